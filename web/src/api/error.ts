/** An answer of the server that is not 2xx, or no answer at all, as a value. */
export class ApiError extends Error {
  /** status of HTTP; 0 when no answer came. */
  readonly status: number
  /** code of the envelope's error; OFFLINE when no answer came, UNREADABLE when the answer was not the envelope. */
  readonly code: string
  /** details of the envelope's error, as they came. */
  readonly details: Readonly<Record<string, unknown>>
  /** requestId finds the request in the audit log. */
  readonly requestId: string | undefined
  /** retryAfter in seconds, when the server said so. */
  readonly retryAfter: number | undefined

  constructor(init: { status: number; code: string; message: string; details?: Record<string, unknown>; requestId?: string | undefined; retryAfter?: number | undefined }) {
    super(init.message)
    this.name = 'ApiError'
    this.status = init.status
    this.code = init.code
    this.details = init.details ?? {}
    this.requestId = init.requestId
    this.retryAfter = init.retryAfter
  }

  /** fields are the server's words about single fields: path to message. */
  get fields(): Readonly<Record<string, string>> {
    const fields = this.details['fields']
    if (fields === null || typeof fields !== 'object') return {}
    return Object.fromEntries(Object.entries(fields).filter((e): e is [string, string] => typeof e[1] === 'string'))
  }

  /** conflict has both sides of a 409 over a version: what is stored, and what was asked. Undefined for any other error. */
  get conflict(): { stored: unknown; asked: unknown } | undefined {
    if (this.status !== 409 || !('stored' in this.details)) return undefined
    return { stored: this.details['stored'], asked: this.details['asked'] }
  }

  get isOffline(): boolean { return this.code === 'OFFLINE' }
  get isSignedOut(): boolean { return this.status === 401 }
  get isForbidden(): boolean { return this.status === 403 }
  get isMissing(): boolean { return this.status === 404 }
}

/** asError turns anything thrown into an ApiError, for the parts that show errors. */
export function asError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new ApiError({ status: 0, code: 'CONSOLE_ERROR', message })
}
