import type { Routes } from './admin'
import { ApiError } from './error'

export type RouteName = keyof Routes

/** The path of "METHOD path". */
type PathOf<R extends string> = R extends `${string} ${infer P}` ? P : never
/** The {names} in a path, as a union. */
type NamesIn<P extends string> = P extends `${string}{${infer N}}${infer Rest}` ? N | NamesIn<Rest> : never
type Takes<R extends RouteName> = Routes[R] extends { takes: infer T } ? T : undefined
export type Gives<R extends RouteName> = Routes[R] extends { gives: infer G } ? G : undefined

export type Query = Record<string, string | number | boolean | undefined>

/** What a call hands over: the path's names, the query, the body and a signal to stop it. */
export type Call<R extends RouteName> = {
  query?: Query | undefined
  signal?: AbortSignal | undefined
} & ([NamesIn<PathOf<R>>] extends [never] ? { path?: undefined } : { path: Record<NamesIn<PathOf<R>>, string> })
  & (Takes<R> extends undefined ? { body?: undefined } : { body: Takes<R> })

/** meta of a list; nextCursor is opaque and handed back as the query's cursor. more says that count stopped at its bound. */
export interface Meta { count?: number; more?: boolean; hasMore?: boolean; nextCursor?: string; [name: string]: unknown }

export type Result<T> =
  | { ok: true; data: T; meta: Meta; requestId: string | undefined }
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
export function urlOf(route: string, path?: Record<string, string>, query?: Query): string {
  const template = route.slice(route.indexOf(' ') + 1)
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path?.[name] ?? ''))
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === '') continue
    params.set(name, String(value))
  }
  const search = params.toString()
  return base + filled + (search ? `?${search}` : '')
}

/** call asks one route and gives its answer or its error as a value; it throws only when the signal stopped it. */
export async function call<R extends RouteName>(route: R, ...[init]: Args<R>): Promise<Result<Gives<R>>> {
  const options = (init ?? {}) as { path?: Record<string, string>; query?: Query; body?: unknown; signal?: AbortSignal }
  const first = await once<Gives<R>>(route, options)
  if (first.ok || !first.error.isSignedOut || atTheDoor.has(route)) return first
  return (await reopen(first.error)) ? once<Gives<R>>(route, options) : first
}

type Args<R extends RouteName> = Record<string, never> extends Call<R> ? [init?: Call<R>] : [init: Call<R>]

/** ask is call for useQuery and useMutation: it gives the data and throws the ApiError. */
export async function ask<R extends RouteName>(route: R, ...args: Args<R>): Promise<Gives<R>> {
  const result = await call(route, ...args)
  if (!result.ok) throw result.error
  return result.data
}

/** A page of a list: its rows and what meta said. */
export interface Page<T> { rows: T; meta: Meta }

/** askPage is ask for lists: it keeps meta beside the rows. */
export async function askPage<R extends RouteName>(route: R, ...args: Args<R>): Promise<Page<Gives<R>>> {
  const result = await call(route, ...args)
  if (!result.ok) throw result.error
  return { rows: result.data, meta: result.meta }
}

async function once<T>(route: string, options: { path?: Record<string, string>; query?: Query; body?: unknown; signal?: AbortSignal }): Promise<Result<T>> {
  const method = route.slice(0, route.indexOf(' '))
  const headers: Record<string, string> = { Accept: 'application/json' }
  const init: RequestInit = { method, headers, credentials: 'same-origin', redirect: 'error' }
  if (options.signal) init.signal = options.signal
  if (options.body !== undefined) {
    headers['Content-Type'] = 'application/json'
    init.body = JSON.stringify(options.body)
  }
  let response: Response
  try {
    response = await fetch(urlOf(route, options.path, options.query), init)
  } catch (thrown) {
    if (options.signal?.aborted) throw thrown
    return { ok: false, error: new ApiError({ status: 0, code: 'OFFLINE', message: 'the server did not answer' }) }
  }
  return read<T>(response)
}

interface Envelope { data?: unknown; meta?: Meta; error?: { code?: unknown; message?: unknown; details?: unknown }; requestId?: string }

async function read<T>(response: Response): Promise<Result<T>> {
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
  if (response.ok) return { ok: true, data: (body.data ?? null) as T, meta: body.meta ?? {}, requestId }
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
