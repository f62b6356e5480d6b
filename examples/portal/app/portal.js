// The portal: which view is shown when, and the forms of the account. gatehouse.js speaks to the service, forms.js shows
// what is wrong with a form, orders.js and tickets.js are the views of the records.

import {Gatehouse} from "./gatehouse.js"
import {clearErrors, fill, onSubmit, showErrors, words} from "./forms.js"
import {Orders} from "./orders.js"
import {Tickets} from "./tickets.js"

const views = [...document.querySelectorAll("[data-view]")]
const linked = ["sign-in", "register", "forgot-password", "orders", "tickets", "profile"] // those with an address, #/name
const membersOnly = ["orders", "tickets", "profile"]
const home = "orders"
const oneOrder = /^orders\/([0-9a-f-]{36})$/ // #/orders/ID is the address of one order
const inPlace = ["order", "no-order", "unavailable"] // they stand at the address that was asked for
const forms = document.forms

// The mails lead to /verify?token=… and /reset-password?token=…. The token does not stay in the address bar, or in a link that
// is passed on. It stays with this entry of the history, until it has done its work or is refused: so a reload, "Try again"
// and the back button find it. This comes before anything else.
if (location.pathname !== "/") {
  const token = new URLSearchParams(location.search).get("token") ?? ""
  history.replaceState({link: {path: location.pathname, token}}, "", "/")
}
const link = () => (location.hash ? undefined : history.state?.link)
const spend = () => link() && history.replaceState(null, "", "/")

let api, orders, tickets
let shown = "loading"
let address = home // of what is shown, without the #/
let wanted = home // where a login leads
let retry = () => {} // what "Try again" does
let resetToken = ""
let userID = ""

// resetAddress is the address that a new password was asked for in this browser within the hour that the mail's link holds:
// the form that the link opens, in whatever tab, tells it to password managers.
const resetAddress = {
  key: "portal.resetAddress",
  get() {
    try {
      const [until, email] = JSON.parse(localStorage.getItem(this.key))
      return Date.now() < until ? email : ""
    } catch {
      return "" // there is none, or the browser denies storage
    }
  },
  set(email) {
    try {
      localStorage.setItem(this.key, JSON.stringify([Date.now() + 3_600_000, email]))
    } catch {} // then it is typed again
  },
  clear() {
    try {
      localStorage.removeItem(this.key)
    } catch {} // then there was none
  },
}

const part = (view, name) => view.querySelector(`[data-is="${name}"]`)
const viewOf = (name) => views.find((one) => one.dataset.view === name)

// say tells, without taking the focus, what has been done.
const status = document.querySelector('[data-is="status"][role="status"]')
let silence
function say(text) {
  status.textContent = text
  clearTimeout(silence)
  silence = setTimeout(() => (status.textContent = ""), 6000)
}

// show makes one view visible and moves the focus to its heading, as a new page would.
function show(name) {
  const view = viewOf(name)
  // A view without an address has none, so that links to the one before it lead there again.
  if (!linked.includes(name) && !inPlace.includes(name) && location.hash) history.pushState(null, "", "/")
  for (const one of views) one.hidden = one !== view
  if (shown !== name) for (const input of viewOf(shown).querySelectorAll("[type=password]")) input.value = "" // nobody comes back for it
  document.querySelector('[data-only="logged-in"]').hidden = !api?.loggedIn
  for (const item of document.querySelectorAll("nav a")) {
    if (item.hash === `#/${name === "order" ? "orders" : name}`) item.setAttribute("aria-current", "page")
    else item.removeAttribute("aria-current")
  }
  const heading = view.querySelector("h1")
  document.title = heading ? `${heading.textContent} · Fernhill Cycles` : "Fernhill Cycles"
  if (shown !== "loading" || link()) heading?.focus()
  shown = name
}

// go shows what is at an address, and puts it there.
function go(path) {
  if (location.hash === `#/${path}`) return route()
  location.hash = `#/${path}`
}

// route shows what the address says; who is not logged in sees no private view, who is sees no view to log in.
function route() {
  let path = location.hash.slice(2)
  if (location.hash && !location.hash.startsWith("#/")) return // the link to the content
  if (link()) return open(link())
  let order = oneOrder.exec(path)?.[1]
  if (!order && (!linked.includes(path) || (api.loggedIn && !membersOnly.includes(path)))) path = home
  if (!api.loggedIn && (order || membersOnly.includes(path))) {
    wanted = path
    path = "sign-in"
    order = undefined
  }
  if (location.hash !== `#/${path}`) history.replaceState(null, "", `/#/${path}`)
  address = path
  if (order) return orders.openOne(order)
  if (path !== "orders") orders.clear() // also what is on its way
  show(path)
  if (path === "orders") orders.open()
  if (path === "tickets") tickets.open()
  if (path === "profile") openProfile()
}

const badLink = "This link was used already, is too old, or is not complete. Please ask for a new one."

// open does what the link of a mail is for.
function open({path, token}) {
  if (path === "/verify") return verify(token)
  resetToken = token
  forms.reset.elements.email.value = resetAddress.get()
  clearErrors(forms.reset)
  show("new-password")
  if (token === "") showErrors(forms.reset, {message: badLink})
}

// unavailable is the view for what could not be done. Its button does that again, in place: a reload would need the
// connection that may be missing.
function unavailable(error, again) {
  part(viewOf("unavailable"), "reason").textContent = words(error)
  retry = again
  show("unavailable")
}

function notice(text) {
  const p = part(viewOf("sign-in"), "notice")
  p.textContent = text
  p.hidden = text === ""
}

function checkMail(email) {
  const view = viewOf("check-mail")
  part(view, "email").textContent = email
  forms.resend.elements.email.value = email
  forms.newlink.elements.email.value = email
  show("check-mail")
}

function deactivated(email) {
  part(viewOf("deactivated"), "email").textContent = email
  show("deactivated")
}

async function verify(token) {
  try {
    await api.verify(token)
  } catch (error) {
    if (error.code !== "TOKEN_EXPIRED" && error.code !== "TOKEN_INVALID" && error.code !== "VALIDATION") return unavailable(error, () => verify(token))
    part(viewOf("not-verified"), "reason").textContent = error.code === "TOKEN_EXPIRED"
      ? "It is older than 24 hours. We can send you a new one."
      : "It was used already, or is not complete. If you have not confirmed your address yet, we can send you a new one."
    show("not-verified")
    return spend()
  }
  show("verified")
  spend()
}

async function openProfile() {
  const view = viewOf("profile")
  clearErrors(forms.profile)
  try {
    const {userId, email, name, customFields, createdAt} = await api.profile()
    userID = userId
    part(view, "email").textContent = email
    part(view, "since").textContent = new Intl.DateTimeFormat(undefined, {dateStyle: "long"}).format(new Date(createdAt))
    fill(forms.profile, {name, company: customFields.company})
    forms.password.elements.username.defaultValue = email // stays when the form is reset
  } catch (error) {
    if (error.code !== "LOGGED_OUT") unavailable(error, route)
  }
}

// The forms. LOGGED_OUT needs no words in a form: the event has led to another view.
const unlessLoggedOut = (error) => (error.code === "LOGGED_OUT" ? null : undefined)

function wireForms() {
  onSubmit(forms.login, async ({email, password}) => {
    await api.login(email, password)
    forms.login.reset()
    notice("")
    resetAddress.clear()
    arrive()
  }, (error) => {
    if (error.code !== "ACCOUNT_NOT_ACTIVE") return undefined
    const email = forms.login.elements.email.value.trim()
    if (error.details.reason === "deactivated") deactivated(email)
    else checkMail(email)
    return null
  })
  onSubmit(forms.register, async ({company, ...fields}) => {
    await api.register(company ? {...fields, company} : fields)
    forms.register.reset()
    checkMail(fields.email)
  }, (error) => (error.code === "EMAIL_TAKEN" ? {fields: {email: error.message}} : undefined))
  onSubmit(forms.resend, async ({email}) => {
    await api.resendVerification(email)
    say(`Sent again to ${email}.`)
  })
  onSubmit(forms.newlink, async ({email}) => {
    await api.resendVerification(email)
    checkMail(email)
  })
  onSubmit(forms.forgot, async ({email}) => {
    await api.requestPasswordReset(email)
    resetAddress.set(email)
    part(viewOf("reset-asked"), "email").textContent = email
    show("reset-asked")
  })
  onSubmit(forms.reset, async ({email, newPassword}) => {
    await api.resetPassword(resetToken, newPassword)
    resetToken = ""
    spend()
    resetAddress.clear()
    forms.reset.reset()
    forms.login.elements.email.value = email
    notice("Your password is changed. Sign in with the new one.")
    go("sign-in")
  }, (error) => {
    if (error.code !== "TOKEN_INVALID" && error.code !== "TOKEN_EXPIRED" && !error.fields?.token) return undefined
    spend()
    return {message: badLink}
  })
  onSubmit(forms.profile, async ({name, company}) => {
    const user = await api.update("user", userID, {name, company: company || null})
    fill(forms.profile, user)
    say("Your profile is saved.")
  }, unlessLoggedOut)
  onSubmit(forms.password, async ({currentPassword, newPassword}) => {
    await api.changePassword(currentPassword, newPassword)
    forms.password.reset()
    say("Your password is changed. Your other devices are signed out.")
  }, (error) => {
    if (error.code === "INVALID_CREDENTIALS") return {fields: {currentPassword: "This is not your current password."}}
    if (error.code === "NETWORK") return {message: "The connection broke off, and we do not know whether your password is changed. Try again; if the current one is refused, the new one is in place."}
    return unlessLoggedOut(error)
  })
}

function wireSession() {
  const why = {here: "", elsewhere: "You have signed out in another tab.", expired: "Your session has ended. Please sign in again."}
  api.addEventListener("logout", ({detail: {reason}}) => {
    wanted = reason === "expired" && (membersOnly.includes(shown) || shown === "order") ? address : home
    orders.clear()
    tickets.clear()
    for (const form of forms) form.reset()
    userID = ""
    forms.password.elements.username.defaultValue = ""
    for (const value of viewOf("profile").querySelectorAll("dd")) value.textContent = ""
    if (shown === "new-password" || shown === "sign-in") return // their own words follow
    notice(why[reason])
    go("sign-in")
  })
  api.addEventListener("login", () => {
    if (shown === "sign-in") arrive()
  })
  document.querySelector('[data-do="logout"]').addEventListener("click", () => {
    // The server may be out of reach: the session is over here nevertheless, and there within 30 days.
    api.logout().catch(() => say("You are signed out in this browser. We could not reach the service to tell it."))
  })
}

// arrive shows what a login was for.
function arrive() {
  go(wanted)
  wanted = home
}

async function start() {
  try {
    const config = await (await fetch("/config.json")).json()
    api = new Gatehouse(config.api)
  } catch {
    return unavailable({code: "NETWORK"}, start)
  }
  orders = new Orders(api, {list: viewOf("orders"), one: viewOf("order")}, {say, show, unavailable: (error) => unavailable(error, route)})
  tickets = new Tickets(api, viewOf("tickets"), {say, unavailable: (error) => unavailable(error, route)})
  wireForms()
  wireSession()
  addEventListener("hashchange", route)
  route()
}

onSubmit(forms.again, () => retry())
start()
