import type { AdminRoutes, None } from './admin'
import { ApiError } from './error'

type Routes = AdminRoutes

/** A route as "METHOD path", as admin.ts lists them. */
export type RouteName = keyof Routes

/** What a route gives as data, and as meta. */
export type Gives<R extends RouteName> = Routes[R]['data']
export type MetaOf<R extends RouteName> = Routes[R]['meta']
/** What a route takes as JSON body, and as query. */
export type Takes<R extends RouteName> = Routes[R]['body']
export type QueryOf<R extends RouteName> = Routes[R]['query']

type Given<Name extends string, T> = [T] extends [None] ? { [K in Name]?: undefined } : { [K in Name]: T }

/** What a call hands over: the path's names, the query, the body and a signal to stop it. */
export type Call<R extends RouteName> = Given<'params', Routes[R]['params']> & Given<'body', Routes[R]['body']>
  & { query?: Routes[R]['query'] | undefined; signal?: AbortSignal | undefined }

type Query = Record<string, string | number | boolean | undefined>

/** meta of a list in general; nextCursor is opaque and handed back as the query's cursor. */
export interface Meta { count?: number; more?: boolean; hasMore?: boolean; nextCursor?: string | null; [name: string]: unknown }

export type Result<T, M = Meta> =
  | { ok: true; data: T; meta: M; requestId: string | undefined }
  | { ok: false; error: ApiError }

const base = '/admin/v1/'

/** What happens on a 401: it resolves to true when somebody signed in again and the call may be repeated. */
type Reopen = (error: ApiError) => Promise<boolean>
let reopen: Reopen = () => Promise.resolve(false)
/** onSignedOut is set once, by the session provider. */
export function onSignedOut(handler: Reopen): void { reopen = handler }

/** Routes that answer 401 for another reason than an ended session. */
const atTheDoor = new Set<string>(['GET session', 'POST session', 'POST session/code', 'POST password/forgot', 'POST password/reset'])

/** urlOf gives the address of a route, e.g. for an EventSource or a download link. */
export function urlOf(route: string, params?: Record<string, string>, query?: Query): string {
  const template = route.slice(route.indexOf(' ') + 1)
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params?.[name] ?? ''))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === '') continue
    search.set(name, String(value))
  }
  const text = search.toString()
  return base + filled + (text ? `?${text}` : '')
}

/** call asks one route and gives its answer or its error as a value; it throws only when the signal stopped it. */
export async function call<R extends RouteName>(route: R, ...[init]: Args<R>): Promise<Result<Gives<R>, MetaOf<R>>> {
  const options = (init ?? {}) as { params?: Record<string, string>; query?: Query; body?: unknown; signal?: AbortSignal }
  const first = await once<Gives<R>, MetaOf<R>>(route, options)
  if (first.ok || !first.error.isSignedOut || atTheDoor.has(route)) return first
  return (await reopen(first.error)) ? once<Gives<R>, MetaOf<R>>(route, options) : first
}

type Args<R extends RouteName> = [Routes[R]['params'], Routes[R]['body']] extends [None, None] ? [init?: Call<R>] : [init: Call<R>]

/** ask is call for useQuery and useMutation: it gives the data and throws the ApiError. */
export async function ask<R extends RouteName>(route: R, ...args: Args<R>): Promise<Gives<R>> {
  const result = await call(route, ...args)
  if (!result.ok) throw result.error
  return result.data
}

/** A page of a list: its rows and what meta said. */
export interface Page<T, M = Meta> { rows: T; meta: M }

/** askPage is ask for lists: it keeps meta beside the rows. */
export async function askPage<R extends RouteName>(route: R, ...args: Args<R>): Promise<Page<Gives<R>, MetaOf<R>>> {
  const result = await call(route, ...args)
  if (!result.ok) throw result.error
  return { rows: result.data, meta: result.meta }
}

async function once<T, M>(route: string, options: { params?: Record<string, string>; query?: Query; body?: unknown; signal?: AbortSignal }): Promise<Result<T, M>> {
  const method = route.slice(0, route.indexOf(' '))
  const headers: Record<string, string> = { Accept: 'application/json' }
  const init: RequestInit = { method, headers, credentials: 'same-origin', redirect: 'error' }
  if (options.signal) init.signal = options.signal
  if (options.body !== undefined) {
    headers['Content-Type'] = 'application/json'
    init.body = JSON.stringify(options.body)
  }
  try {
    return await read<T, M>(await fetch(urlOf(route, options.params, options.query), init))
  } catch (thrown) {
    if (options.signal?.aborted) throw thrown
    return { ok: false, error: new ApiError({ status: 0, code: 'OFFLINE', message: 'the server did not answer' }) }
  }
}

interface Envelope { data?: unknown; meta?: Meta; error?: { code?: unknown; message?: unknown; details?: unknown }; requestId?: string }

async function read<T, M>(response: Response): Promise<Result<T, M>> {
  const requestId = response.headers.get('X-Request-Id') ?? undefined
  const text = await response.text()
  let body: Envelope = {}
  if (text !== '') {
    try {
      body = JSON.parse(text) as Envelope
    } catch {
      return { ok: false, error: new ApiError({ status: response.status, code: 'UNREADABLE', message: `the server answered ${response.status} with something that is not JSON`, requestId }) }
    }
  }
  if (response.ok) return { ok: true, data: (body.data ?? null) as T, meta: (body.meta ?? {}) as M, requestId }
  const error = body.error ?? {}
  const retry = Number(response.headers.get('Retry-After'))
  return {
    ok: false,
    error: new ApiError({
      status: response.status,
      code: typeof error.code === 'string' ? error.code : `HTTP_${response.status}`,
      message: typeof error.message === 'string' ? error.message : `the server answered ${response.status}`,
      details: error.details !== null && typeof error.details === 'object' ? (error.details as Record<string, unknown>) : {},
      requestId,
      retryAfter: Number.isFinite(retry) && retry > 0 ? retry : undefined,
    }),
  }
}
