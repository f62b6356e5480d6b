// What goes wrong with an account, in a real Chromium: each step is a person who is stuck, and what the page does for them.
// stage.mjs has the words, portal_test.go starts what it needs.

import assert from "node:assert/strict"
import {
  api, at, command, described, fails, field, focused, follow, heading, front, link, look, mail, member, open, picture, press, reads,
  refusal, requests, signIn, step, stored, ticket, titles, told, warned, watched, whole,
} from "./stage.mjs"

const password = "a bell, a basket"
const changed = "two bells, no basket"
const failing = /^Failed to load resource: (net::ERR_|the server responded with a status of (429|503) )/
const eva = "eva@customer.example"
const finn = "finn@customer.example"
const hugo = "hugo@customer.example"
const gail = "gail@customer.example"

const desk = await watched({viewport: {width: 1100, height: 800}, expected: failing})
const page = desk.page
const service = (where) => `${at.api}/public/v1${where}`

// once answers the next request to a path in the server's place; later ones reach it.
async function once(where, answer) {
  await page.route(service(where), (route) => (answer === "lost" ? route.abort("failed") : route.fulfill(answer)), {times: 1})
}

const settle = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

await step("a link that could not be used is used again by “Try again”, in place", async () => {
  assert.equal((await api("POST", "/auth/register", {body: {email: eva, password, name: "Eva Ruiz"}})).status, 201)
  await once("/auth/verify", "lost")
  await page.goto(link(await mail(eva, 1), "/verify?token="))
  await heading(page, "That did not work just now")
  assert.equal(page.url(), `${at.portal}/`, "the token has left the address bar")
  await reads(page, "We cannot reach the service. Check your connection and try again.")
  await picture(page, "unavailable")
  await once("/auth/verify", refusal(429, "TOO_MANY_REQUESTS", 42))
  const sent = requests(desk.context, "POST", "/auth/verify")
  await press(page, "Try again")
  await reads(page, "That is too much at once. Please try again in 42 seconds.")
  assert.equal(await focused(page), "That did not work just now")
  await once("/auth/verify", "lost")
  await page.reload() // as people do instead
  await reads(page, "We cannot reach the service.")
  await press(page, "Try again")
  await heading(page, "Your address is confirmed")
  assert.equal(sent.length, 3)
  await page.reload()
  await heading(page, "Sign in")
  assert.equal(sent.length, 3, "what has done its work is forgotten")
  await mail(eva, 2)
})

await step("a login that the service has no room for is shown, and not sent again by itself", async () => {
  const sent = requests(desk.context, "POST", "/auth/login")
  await once("/auth/login", refusal(503, "OVERLOADED", 1))
  await signIn(page, eva, password)
  await warned(page, "We cannot do that right now. Please try again in a second.")
  assert.equal(await field(page, "Password").inputValue(), password, "to press the button is enough")
  await once("/auth/login", refusal(429, "TOO_MANY_REQUESTS", 1))
  await press(page, "Sign in")
  await warned(page, "That is too much at once. Please try again in a second.")
  await settle(1200) // the second is over
  assert.equal(sent.length, 2)
})

await step("who is sent to sign in arrives where they were going", async () => {
  await page.goto(`${at.portal}/#/profile`)
  await signIn(page, eva, password)
  await heading(page, "Profile")
  await page.getByText(eva, {exact: true}).waitFor()
})

await step("password forms say whose password it is", async () => {
  const forms = await page.evaluate(() => [...document.forms].filter((form) => form.querySelector("[type=password]")).map((form) => {
    const named = [...form.querySelectorAll("input")].map((input) => input.autocomplete)
    return [form.getAttribute("name"), ...named.filter((one) => one === "username" || one.endsWith("-password"))]
  }))
  assert.deepEqual(forms, [
    ["login", "username", "current-password"],
    ["register", "username", "new-password"],
    ["reset", "username", "new-password"],
    ["password", "username", "current-password", "new-password"],
  ])
  const user = page.locator("form[name=password] [autocomplete=username]")
  assert.equal(await user.inputValue(), eva)
  assert.ok(await user.evaluate((input) => input.readOnly))
})

// A second browser of the same person.
const phone = await watched({viewport: {width: 390, height: 844}, expected: failing})
await step("a wrong current password is told at its input, and is one attempt", async () => {
  await phone.page.goto(at.tickets)
  await signIn(phone.page, eva, password)
  await heading(phone.page, "Your tickets")
  await front(page)
  const sent = requests(desk.context, "POST", "/auth/password")
  const refreshed = requests(desk.context, "POST", "/auth/refresh")
  await field(page, "Current password").fill("not her password")
  await field(page, "New password").fill("short")
  await press(page, "Change password")
  await fails(page, "New password", "Please use at least 8 characters.")
  await field(page, "New password").fill(`${changed}${"!".repeat(120)}`)
  await press(page, "Change password")
  await fails(page, "New password", "Please use at most 128 characters.")
  assert.equal(sent.length, 0)
  await field(page, "New password").fill(changed)
  await press(page, "Change password")
  await fails(page, "Current password", "This is not your current password.")
  assert.equal(await focused(page), "currentPassword")
  assert.deepEqual([sent.length, refreshed.length], [1, 0])
  await picture(page, "password-wrong")
  await once("/auth/password", refusal(503, "OVERLOADED", 1))
  await field(page, "Current password").fill(password)
  await press(page, "Change password")
  await warned(page, "We cannot do that right now. Please try again in a second.")
  await settle(1200)
  assert.equal(sent.length, 2)
})

await step("the password is changed while signed in: this session stays, the others end", async () => {
  await press(page, "Change password")
  await told(page, "Your password is changed. Your other devices are signed out.")
  assert.equal(await field(page, "Current password").inputValue(), "")
  assert.equal(await page.locator("form[name=password] [autocomplete=username]").inputValue(), eva, "the name stays")
  await picture(page, "password-changed")
  await page.reload()
  await page.getByText(eva, {exact: true}).waitFor()
  await heading(page, "Profile")
  look(phone.page)
  await phone.page.reload()
  await heading(phone.page, "Sign in")
  await reads(phone.page, "Your session has ended. Please sign in again.")
  assert.equal(await described(phone.page.getByRole("heading", {level: 1, name: "Sign in"})), "Your session has ended. Please sign in again.")
  await front(page)
})

await step("a change of password outlives the hour of the access token", async () => {
  const sent = requests(desk.context, "POST", "/auth/password")
  await page.route(service("/auth/password"), (route) => route.continue({headers: {...route.request().headers(), authorization: "Bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA"}}), {times: 1})
  await field(page, "Current password").fill(changed)
  await field(page, "New password").fill(password)
  await press(page, "Change password")
  await told(page, "Your password is changed.")
  assert.equal(sent.length, 2)
})

await step("without a connection nothing is lost, and “Try again” goes on", async () => {
  await desk.context.setOffline(true)
  await follow(page, "Tickets")
  await heading(page, "That did not work just now")
  await press(page, "Try again")
  await reads(page, "We cannot reach the service. Check your connection and try again.")
  assert.equal(page.url(), `${at.portal}/#/tickets`)
  await desk.context.setOffline(false)
  await press(page, "Try again")
  await heading(page, "Your tickets")
  await reads(page, "Nothing here yet.")
})

await step("a ticket is made once, however often the button is pressed and wherever its author goes", async () => {
  const sent = requests(desk.context, "POST", "/data/ticket")
  let release, stored
  const held = new Promise((resolve) => (release = resolve)), made = new Promise((resolve) => (stored = resolve))
  await page.route(service("/data/ticket"), async (route) => {
    if (route.request().method() !== "POST") return route.fallback()
    const response = await route.fetch()
    stored()
    await held
    return route.fulfill({response})
  }, {times: 1})
  await press(page, "New ticket")
  await field(page, "Title").fill("Chain slips")
  await field(page, "Title").press("Enter")
  await field(page, "Title").press("Enter")
  await field(page, "Title").press("Escape")
  await press(page, "Cancel")
  assert.equal(await field(page, "Title").count(), 1, "what is on its way cannot be called back")
  await follow(page, "Profile")
  await heading(page, "Profile")
  await made
  await follow(page, "Tickets")
  await ticket(page, "Chain slips").waitFor()
  release()
  await told(page, "Your ticket is with us.")
  assert.deepEqual(await titles(page), ["Chain slips"])
  assert.equal(sent.length, 1)
})

await step("when the answer is lost, the author is told to look first", async () => {
  await page.route(service("/data/ticket"), (route) => (route.request().method() === "POST" ? route.abort("failed") : route.fallback()))
  await press(page, "New ticket")
  await field(page, "Title").fill("Saddle squeaks")
  await press(page, "Save")
  await warned(page, "your ticket may have reached us. Look in a second tab before you send it again.")
  await page.unrouteAll()
  await press(page, "Cancel")
})

await step("a ticket that another tab deleted is not “no such record”", async () => {
  const second = await open(desk.context)
  await second.goto(at.tickets)
  await press(page, "Edit Chain slips")
  await field(page, "Title").fill("Chain slips uphill")
  await press(second, "Delete Chain slips")
  await second.getByRole("dialog").getByRole("button", {name: "Delete"}).click()
  await ticket(second, "Chain slips").waitFor({state: "detached"})
  await front(page)
  await press(page, "Save")
  await warned(page, "This ticket is gone: it was deleted in the meantime.")
  assert.equal(await field(page, "Title").inputValue(), "Chain slips uphill", "the words are kept")
  await press(page, "Cancel")
  await second.close()
})

await step("signing out in another tab closes what is open here", async () => {
  await follow(page, "Profile")
  await page.getByText(eva, {exact: true}).waitFor()
  await follow(page, "Tickets")
  await press(page, "New ticket")
  await field(page, "Title").fill("Private matter")
  await press(page, "Save")
  await press(page, "Delete Private matter")
  await page.getByRole("dialog").waitFor()
  const second = await open(desk.context)
  await second.goto(at.portal)
  await press(second, "Sign out")
  await front(page)
  await heading(page, "Sign in")
  await reads(page, "You have signed out in another tab.")
  assert.equal(await page.getByRole("dialog").count(), 0)
  const left = await page.evaluate(() => document.body.textContent + [...document.querySelectorAll("input")].map((input) => input.value))
  assert.ok(!left.includes("Private matter") && !left.includes(eva), "nothing of theirs is left in the page")
  await second.close()
})

await step("signing out holds when it crosses a refresh of another tab", async () => {
  await signIn(page, eva, password)
  await heading(page, "Your company’s orders")
  const second = await desk.context.newPage()
  await second.addInitScript(() => { // it reads late what other tabs write, as tabs do, but for longer
    const {getItem, setItem} = Storage.prototype
    window.late = {on: false, events: []}
    addEventListener("storage", (event) => {
      if (!window.late.on || !event.isTrusted) return
      window.late.events.push({key: event.key, oldValue: event.oldValue, newValue: event.newValue})
      event.stopImmediatePropagation()
    })
    Storage.prototype.getItem = function (key) {
      return (window.late.on && window.late.stored) || getItem.call(this, key)
    }
    Storage.prototype.setItem = function (key, value) {
      setItem.call(this, key, value)
      window.late.written = window.late.on && value
    }
  })
  let release
  const held = new Promise((resolve) => (release = resolve))
  await second.route(service("/auth/refresh"), async (route) => {
    const response = await route.fetch()
    await held
    return route.fulfill({response})
  }, {times: 1})
  const asked = second.waitForRequest(service("/auth/refresh"))
  await second.goto(at.portal)
  await asked
  await second.evaluate(() => {
    window.late.stored = localStorage.getItem("gatehouse.refreshToken")
    window.late.on = true
  })
  await page.bringToFront()
  await press(page, "Sign out")
  await heading(page, "Sign in")
  const polling = 50 // a tab behind another is not drawn
  await second.waitForFunction(() => window.late.events.some(({newValue}) => newValue === null), undefined, {polling})
  release()
  await second.waitForFunction(() => window.late.written, undefined, {polling}) // the new token
  const ended = second.waitForResponse((response) => response.url().endsWith("/auth/logout") && response.request().method() === "POST")
  const token = await second.evaluate(() => {
    window.late.on = false
    const stored = window.late.written
    for (const event of window.late.events) dispatchEvent(new StorageEvent("storage", event))
    return stored
  })
  assert.equal(token.length, 43, "the refresh has undone the signing out, for a moment")
  assert.deepEqual([(await ended).status(), (await ended).request().postDataJSON()], [200, {refreshToken: token}])
  await heading(second, "Sign in")
  await heading(page, "Sign in")
  for (const tab of [page, second]) assert.equal(await stored(tab), null)
  assert.equal((await api("POST", "/auth/refresh", {body: {refreshToken: token}})).status, 401)
  await second.close()
})

await step("who comes back by the back button, signed out meanwhile, sees nothing of it", async () => {
  const chromium = await whole()
  const {context, page: first} = await watched({inside: chromium})
  await member(hugo, "Hugo Falk", password)
  await first.goto(at.portal)
  await signIn(first, hugo, password)
  await follow(first, "Tickets")
  await press(first, "New ticket")
  await field(first, "Title").fill("Hugo's own")
  await press(first, "Save")
  await ticket(first, "Hugo's own").waitFor()
  await first.evaluate(() => (window.kept = true))
  await first.goto(at.stranger)
  const second = await open(context)
  await second.goto(at.portal)
  await press(second, "Sign out")
  await heading(second, "Sign in")
  await front(first)
  await first.evaluate(() => history.back())
  await first.waitForFunction(() => window.kept) // it came back as it was left
  await heading(first, "Sign in")
  assert.equal(await first.getByRole("listitem").count(), 0)
  await chromium.close()
  look(page)
})

await step("a forgotten password: the form knows the address, and the way back to it", async () => {
  await member(finn, "Finn Aho", password)
  await follow(page, "Forgot your password?")
  await heading(page, "Forgot your password?") // both views have the input
  await field(page, "E-mail address").fill(finn)
  await press(page, "Send the link")
  await heading(page, "Check your mail")
  const tab = await open(desk.context) // as a mail program does
  await tab.goto(link(await mail(finn, 3), "/reset-password?token="))
  await heading(tab, "Choose a new password")
  assert.equal(await field(tab, "E-mail address").inputValue(), finn)
  assert.equal(await field(tab, "E-mail address").getAttribute("autocomplete"), "username")
  await picture(tab, "new-password")
  await follow(tab, "Ask for a new link")
  await heading(tab, "Forgot your password?")
  await tab.goBack()
  await heading(tab, "Choose a new password")
  await tab.reload()
  await heading(tab, "Choose a new password")
  await field(tab, "New password").fill(changed)
  await press(tab, "Set password")
  await heading(tab, "Sign in")
  assert.equal(await described(tab.getByRole("heading", {level: 1})), "Your password is changed. Sign in with the new one.")
  assert.equal(await field(tab, "E-mail address").inputValue(), finn)
  await field(tab, "Password").fill(changed)
  await follow(tab, "Create an account")
  await heading(tab, "Create your account")
  assert.equal(await tab.evaluate(() => document.forms.login.elements.password.value), "", "a password does not wait in a hidden form")
  await tab.goto(`${at.portal}/reset-password`)
  await warned(tab, "This link was used already, is too old, or is not complete. Please ask for a new one.")
  await tab.close()
})

await step("one account takes the place of another in every tab", async () => {
  await page.goto(at.portal)
  await front(page)
  const second = await open(desk.context)
  await second.goto(at.portal)
  await heading(second, "Sign in")
  let release
  const held = new Promise((resolve) => (release = resolve))
  await second.route(service("/auth/login"), async (route) => {
    await held
    return route.continue()
  }, {times: 1})
  await signIn(second, finn, changed) // slowly
  await signIn(page, hugo, password)
  await follow(page, "Tickets")
  await ticket(page, "Hugo's own").waitFor()
  release()
  await heading(page, "Your company’s orders") // those of the other: what was open is closed
  await front(page)
  await follow(page, "Profile")
  await page.getByText(finn, {exact: true}).waitFor()
  await follow(page, "Tickets")
  await reads(page, "Nothing here yet.")
  await press(page, "Sign out")
  await heading(second, "Sign in")
  await second.close()
})

await step("a deactivated customer is told so, and is offered no mail", async () => {
  await member(gail, "Gail Brandt", password)
  await command("user", "deactivate", "--email", gail)
  await front(page)
  const sent = requests(desk.context, "POST", "/auth/resend-verification")
  await signIn(page, gail, "not her password")
  await warned(page, "The e-mail address or the password is wrong.")
  await signIn(page, gail, password)
  await heading(page, "Your account is deactivated")
  await reads(page, gail)
  assert.match(await described(page.getByRole("heading", {level: 1})), /we have switched off the account of gail@customer\.example/)
  assert.equal(await focused(page), "Your account is deactivated")
  assert.equal(await page.getByRole("link", {name: "hello@fernhill.example"}).getAttribute("href"), "mailto:hello@fernhill.example")
  assert.equal(await page.getByRole("button").count(), 0)
  assert.equal(sent.length, 0)
  await picture(page, "deactivated")
  await follow(page, "Sign in with another account")
  await heading(page, "Sign in")
  assert.equal(await stored(page), null)
  const ivy = "ivy@customer.example"
  assert.equal((await api("POST", "/auth/register", {body: {email: ivy, password, name: "Ivy"}})).status, 201)
  await signIn(page, ivy, password)
  await heading(page, "Check your mail")
})
