// The portal: which view is shown when, and the forms of the account. gatehouse.js speaks to the service, forms.js shows
// what is wrong with a form, tickets.js is the view of the records.

import {Gatehouse} from "./gatehouse.js"
import {clearErrors, fill, onSubmit, sentence} from "./forms.js"
import {Tickets} from "./tickets.js"

const views = [...document.querySelectorAll("[data-view]")]
const linked = ["sign-in", "register", "forgot-password", "tickets", "profile"] // those with an address, #/name
const membersOnly = ["tickets", "profile"]
const forms = document.forms

// The mails lead to /verify?token=… and /reset-password?token=…; the token does not stay in the address bar, the history
// or a link that is passed on. This comes before anything else.
const entry = {path: location.pathname, token: new URLSearchParams(location.search).get("token") ?? ""}
if (entry.path !== "/") history.replaceState(null, "", "/")

let api, tickets
let shown = "loading"
let resetToken = ""
let userID = ""

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
  if (!linked.includes(name) && name !== "unavailable" && location.hash) history.pushState(null, "", "/")
  for (const one of views) one.hidden = one !== view
  document.querySelector('[data-only="logged-in"]').hidden = !api?.loggedIn
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#/${name}`) link.setAttribute("aria-current", "page")
    else link.removeAttribute("aria-current")
  }
  const heading = view.querySelector("h1")
  document.title = heading ? `${heading.textContent} · Fernhill Cycles` : "Fernhill Cycles"
  if (shown !== "loading" || entry.path !== "/") heading?.focus()
  shown = name
}

// go shows a view that has an address, and puts it there.
function go(name) {
  if (location.hash === `#/${name}`) return route()
  location.hash = `#/${name}`
}

// route shows what the address says; who is not logged in sees no private view, who is sees no view to log in.
function route() {
  let name = location.hash.slice(2)
  if (location.hash && !location.hash.startsWith("#/")) return // the link to the content
  if (!linked.includes(name) || (api.loggedIn && name !== "profile")) name = "tickets"
  if (!api.loggedIn && membersOnly.includes(name)) name = "sign-in"
  if (location.hash !== `#/${name}`) history.replaceState(null, "", `/#/${name}`)
  show(name)
  if (name === "tickets") tickets.open()
  if (name === "profile") openProfile()
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

async function verify(token) {
  try {
    await api.verify(token)
    show("verified")
  } catch (error) {
    if (error.code !== "TOKEN_EXPIRED" && error.code !== "TOKEN_INVALID" && error.code !== "VALIDATION") return show("unavailable")
    part(viewOf("not-verified"), "reason").textContent = error.code === "TOKEN_EXPIRED"
      ? "It is older than 24 hours. We can send you a new one."
      : "It was used already, or is not complete. If you have not confirmed your address yet, we can send you a new one."
    show("not-verified")
  }
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
  } catch (error) {
    if (error.code !== "LOGGED_OUT") show("unavailable")
  }
}

// The forms. LOGGED_OUT needs no words in a form: the event has led to another view.
const unlessLoggedOut = (error) => (error.code === "LOGGED_OUT" ? null : undefined)

function wireForms() {
  onSubmit(forms.login, async ({email, password}) => {
    await api.login(email, password)
    forms.login.reset()
    notice("")
    go("tickets")
  }, (error) => {
    if (error.code !== "ACCOUNT_NOT_ACTIVE") return undefined
    checkMail(forms.login.elements.email.value.trim())
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
    part(viewOf("reset-asked"), "email").textContent = email
    show("reset-asked")
  })
  onSubmit(forms.reset, async ({newPassword}) => {
    await api.resetPassword(resetToken, newPassword)
    resetToken = ""
    forms.reset.reset()
    notice("Your password is changed. Sign in with the new one.")
    go("sign-in")
  }, (error) => {
    if (error.code !== "TOKEN_INVALID" && error.code !== "TOKEN_EXPIRED") return undefined
    return {message: "This link was used already, or is too old. Please ask for a new one."}
  })
  onSubmit(forms.profile, async ({name, company}) => {
    const user = await api.update("user", userID, {name, company: company || null})
    fill(forms.profile, user)
    say("Your profile is saved.")
  }, unlessLoggedOut)
}

function wireSession() {
  const why = {here: "", elsewhere: "You have signed out in another tab.", expired: "Your session has ended. Please sign in again."}
  api.addEventListener("logout", ({detail: {reason}}) => {
    tickets.clear()
    for (const form of forms) form.reset()
    if (shown === "new-password") return // its own words follow
    notice(why[reason])
    go("sign-in")
  })
  api.addEventListener("login", () => {
    if (shown === "sign-in") go("tickets")
  })
  document.querySelector('[data-do="logout"]').addEventListener("click", () => {
    // The server may be out of reach: the session is over here nevertheless, and there within 30 days.
    api.logout().catch((error) => say(sentence(error.message)))
  })
}

async function start() {
  for (const button of document.querySelectorAll('[data-do="reload"]')) button.addEventListener("click", () => location.reload())
  try {
    const config = await (await fetch("/config.json")).json()
    api = new Gatehouse(config.api)
  } catch {
    return show("unavailable")
  }
  tickets = new Tickets(api, viewOf("tickets"), {say, unavailable: () => show("unavailable")})
  wireForms()
  wireSession()
  addEventListener("hashchange", route)
  if (entry.path === "/verify") return verify(entry.token)
  if (entry.path === "/reset-password") {
    resetToken = entry.token
    return show("new-password")
  }
  route()
}

start()
