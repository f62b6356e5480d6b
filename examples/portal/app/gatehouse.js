// A client of Gatehouse for pages in a browser: one file, no dependencies, made to be copied.
//
//   const api = new Gatehouse("https://api.example.com")
//   await api.login(email, password)
//   const {records, nextCursor} = await api.list("ticket", {limit: 20})
//
// Where the tokens are. The access token lives an hour and is in memory only. The refresh token lives 30 days, is changed
// by each use, and is in localStorage, so that a reload or a second tab needs no new login. That means: any script that
// runs in the page can read it, so run none but your own, and keep the strict Content-Security-Policy of index.html. An app
// that cannot promise that (advertising, foreign widgets) should have a backend for its frontend: a server of yours that
// holds the tokens, gives the page an HttpOnly, SameSite cookie of its own and passes its calls on.
//
// Events: "logout" when the session has ended, detail.reason being "here", "elsewhere" (in another tab) or "expired";
// "login" when somebody logged in in another tab.

const storageKey = "gatehouse.refreshToken"
const longestWait = 5 // seconds of Retry-After that are waited out; longer ones are the caller's to tell
const timeout = 20_000 // milliseconds for one request

// GatehouseError is what every method throws. status is 0 when there was no answer: then code is NETWORK, or LOGGED_OUT
// when the session ended first. fields says per field what is wrong; retryAfter is in seconds, 0 when there is none.
export class GatehouseError extends Error {
  constructor({status = 0, code, message, details = {}, retryAfter = 0, requestId = ""}) {
    super(message)
    this.name = "GatehouseError"
    Object.assign(this, {status, code, details, fields: details.fields ?? {}, retryAfter, requestId})
  }
}

export class Gatehouse extends EventTarget {
  #base
  #storage = storageOrMemory()
  #accessToken = null
  #refreshing = null // the refresh that is under way in this tab
  #renewed = {} // {from, to}: the refresh token that this tab has replaced last, and by which
  #session = new AbortController() // ends the requests of a session together with it

  // api is the tenant's address, like https://api.example.com.
  constructor(api) {
    super()
    this.#base = new URL("/public/v1", api).href
    addEventListener("storage", (event) => {
      if (event.key !== storageKey && event.key !== null) return // null: all of it was cleared
      // What is stored by now may be the next one's already: when a login takes another's place, two events come.
      if (event.newValue === null) this.#gone(event.oldValue)
      else if (event.oldValue === null) this.dispatchEvent(new Event("login"))
    })
  }

  // loggedIn says whether there is a session; whether it still holds, the next request tells.
  get loggedIn() {
    return this.#storage.getItem(storageKey) !== null
  }

  // The account.

  async register(fields) {
    return (await this.#send("POST", "/auth/register", fields)).data
  }

  async verify(token) {
    return (await this.#send("POST", "/auth/verify", {token})).data
  }

  // resendVerification and requestPasswordReset succeed whether or not there is such an account.
  async resendVerification(email) {
    await this.#send("POST", "/auth/resend-verification", {email})
  }

  async requestPasswordReset(email) {
    await this.#send("POST", "/auth/request-password-reset", {email})
  }

  // resetPassword ends every session of the user, and so the one in this browser.
  async resetPassword(token, newPassword) {
    await this.#send("POST", "/auth/password-reset", {token, newPassword})
    this.#forget("here")
  }

  // login takes the place of a session that another tab has begun meanwhile: that tab hears "logout", then "login".
  async login(email, password) {
    const tokens = (await this.#send("POST", "/auth/login", {email, password})).data
    if (this.loggedIn) this.#forget("here")
    this.#keep(tokens)
  }

  // changePassword ends every other session of the user; this one stays. A wrong current password is INVALID_CREDENTIALS.
  async changePassword(currentPassword, newPassword) {
    await this.#call("POST", "/auth/password", {currentPassword, newPassword}, {patient: false})
  }

  // logout ends the session in all tabs at once, and then tells the server.
  async logout() {
    const refreshToken = this.#storage.getItem(storageKey)
    this.#forget("here")
    if (refreshToken !== null) await alone(() => this.#send("POST", "/auth/logout", {refreshToken}, {patient: true}))
  }

  // me is {userId, email, name, isOwner, abilities}; the abilities are CASL raw rules.
  async me() {
    return (await this.#call("GET", "/me")).data
  }

  // profile is {userId, email, name, locale, emailVerified, customFields, createdAt}.
  async profile() {
    return (await this.#call("GET", "/auth/me")).data
  }

  // The records.

  // list is one page, newest first. Give nextCursor back for the next one; it is null at the end.
  async list(entity, {limit, cursor, filter = {}} = {}) {
    const query = new URLSearchParams()
    if (limit) query.set("limit", limit)
    if (cursor) query.set("cursor", cursor)
    for (const [field, value] of Object.entries(filter)) query.set(`filter[${field}]`, value)
    const {data, meta} = await this.#call("GET", `${path(entity)}?${query}`)
    return {records: data, nextCursor: meta.nextCursor}
  }

  async get(entity, id) {
    return (await this.#call("GET", path(entity, id))).data
  }

  async create(entity, fields) {
    return (await this.#call("POST", path(entity), fields)).data
  }

  // update merges: fields that are not named stay, null clears.
  async update(entity, id, fields) {
    return (await this.#call("PATCH", path(entity, id), fields)).data
  }

  async delete(entity, id) {
    return (await this.#call("DELETE", path(entity, id))).data
  }

  // What is behind them.

  // #call sends a request as the user who is logged in. An access token that is refused, since its hour is over, is
  // replaced by a refresh, once; other answers with the status 401, like that of a wrong current password, are the caller's.
  async #call(method, where, body, {patient = true} = {}) {
    const session = this.#session.signal
    const accessToken = this.#accessToken ?? (await this.#refresh())
    try {
      return await this.#send(method, where, body, {accessToken, session, patient})
    } catch (error) {
      if (error.code !== "UNAUTHORIZED") throw error
    }
    if (this.#accessToken === accessToken) this.#accessToken = null // else another request has refreshed already
    return this.#send(method, where, body, {accessToken: this.#accessToken ?? (await this.#refresh()), session, patient})
  }

  // #refresh gives a new access token. Requests of this tab that need one at the same time share one refresh.
  #refresh() {
    this.#refreshing ??= alone(() => this.#rotate()).finally(() => (this.#refreshing = null))
    return this.#refreshing
  }

  async #rotate() {
    const session = this.#session
    const presented = this.#storage.getItem(storageKey)
    if (presented === null) throw loggedOut()
    const ask = () => this.#send("POST", "/auth/refresh", {refreshToken: presented}, {patient: true})
    let tokens
    try {
      // When the answer was lost the server may have changed the token; asked again within 30 s it gives the same new one.
      tokens = (await ask().catch((error) => (error.code === "NETWORK" ? pause(1).then(ask) : Promise.reject(error)))).data
    } catch (error) {
      if (error.status !== 401) throw error
      if (this.#storage.getItem(storageKey) === presented) this.#forget("expired")
      throw loggedOut()
    }
    const stored = this.#storage.getItem(storageKey)
    if (stored === null || session !== this.#session) { // logged out while the answer was on its way
      await this.#send("POST", "/auth/logout", {refreshToken: tokens.refreshToken}, {patient: true})
      throw loggedOut()
    }
    this.#accessToken = tokens.accessToken
    if (stored === presented) { // else another tab is ahead
      this.#storage.setItem(storageKey, tokens.refreshToken)
      this.#renewed = {from: presented, to: tokens.refreshToken}
    }
    return tokens.accessToken
  }

  #keep({accessToken, refreshToken}) {
    this.#accessToken = accessToken
    this.#storage.setItem(storageKey, refreshToken)
  }

  #forget(reason) {
    this.#storage.removeItem(storageKey) // the other tabs hear of it by their storage event
    this.#end(reason)
  }

  // #gone ends the session whose refresh token another tab has taken away. A refresh of this tab may have crossed that, since
  // what one tab writes others read a moment later: then the new token belongs to the session that has ended, and goes too.
  #gone(token) {
    const {from, to} = this.#renewed
    if (from !== undefined && token === from && this.#storage.getItem(storageKey) === to) {
      this.#storage.removeItem(storageKey)
      alone(() => this.#send("POST", "/auth/logout", {refreshToken: to}, {patient: true})).catch(() => {}) // nobody has it any more
    }
    this.#end("elsewhere")
  }

  #end(reason) {
    this.#accessToken = null
    this.#session.abort()
    this.#session = new AbortController()
    this.dispatchEvent(new CustomEvent("logout", {detail: {reason}}))
  }

  // #send is one request and its answer, {data, meta}. 429 and 503 say that nothing was done: when the server asks for a
  // short wait, a patient request is sent once more after it. Patient are those of a session. What a person does with a
  // password or the token of a mail never is: each time counts as one of their attempts, and is theirs to decide.
  async #send(method, where, body, {patient = false, ...options} = {}) {
    try {
      return await this.#exchange(method, where, body, options)
    } catch (error) {
      if (!patient || !(error.retryAfter > 0 && error.retryAfter <= longestWait)) throw error
      await pause(error.retryAfter)
      return this.#exchange(method, where, body, options)
    }
  }

  async #exchange(method, where, body, {accessToken, session}) {
    const headers = {Accept: "application/json"}
    if (body !== undefined) headers["Content-Type"] = "application/json"
    if (accessToken !== undefined) headers.Authorization = `Bearer ${accessToken}`
    const signals = [AbortSignal.timeout(timeout), ...(session ? [session] : [])]
    let response, envelope
    try {
      response = await fetch(this.#base + where, {
        method, headers, body: JSON.stringify(body), signal: AbortSignal.any(signals),
        credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer",
      })
      envelope = await response.json()
    } catch {
      if (session?.aborted) throw loggedOut()
      throw new GatehouseError({code: "NETWORK", message: "the service cannot be reached"})
    }
    if (response.ok) return envelope
    throw new GatehouseError({ // something on the way may have answered in the service's place, in its own form
      status: response.status, code: "UNKNOWN", message: `the service answered with the status ${response.status}`, ...envelope?.error,
      retryAfter: Number(response.headers.get("Retry-After")) || 0, requestId: response.headers.get("X-Request-Id") ?? "",
    })
  }
}

// alone does work while no other tab does such work, so that a refresh token is presented once. The lock is kept a moment
// longer than the work takes: what was written to localStorage is not at once what other tabs read. Where all this fails,
// or the browser has no locks, nothing bad happens: within 30 s the server answers a token that comes twice with the same
// new one.
function alone(work) {
  if (!navigator.locks) return work()
  return new Promise((resolve, reject) => {
    navigator.locks.request("gatehouse.session", async () => {
      await work().then(resolve, reject)
      await pause(0.1)
    }).catch(reject)
  })
}

function path(entity, id) {
  const parts = ["/data", entity, ...(id === undefined ? [] : [id])]
  return parts.map((part, i) => (i === 0 ? part : encodeURIComponent(part))).join("/")
}

function pause(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000))
}

function loggedOut() {
  return new GatehouseError({code: "LOGGED_OUT", message: "the session has ended"})
}

// storageOrMemory is localStorage; where the browser denies it, the session lasts as long as the page.
function storageOrMemory() {
  try {
    localStorage.getItem(storageKey)
    return localStorage
  } catch {
    const kept = new Map()
    return {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => void kept.set(key, value),
      removeItem: (key) => void kept.delete(key),
    }
  }
}
