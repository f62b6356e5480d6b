// The story of the portal's users, in a real Chromium. portal_test.go starts what it needs and says where it is; a step that
// fails ends it, with a picture of the page. Nothing may be complained about in the console meanwhile.

import assert from "node:assert/strict"
import {
  api, at, fails, field, focused, follow, heading, front, link, mail, open, picture, press, reads, requests,
  signIn, step, stored, ticket, titles, told, warned, watched,
} from "./stage.mjs"
import {stranger} from "./stranger.mjs"

const password = "correct horse battery"
const newPassword = "a brand new saddle"
const ana = "ana@customer.example"
const ben = "ben@customer.example"

const desk = await watched({viewport: {width: 1100, height: 800}})
const page = desk.page
let accessToken
desk.context.on("request", (request) => (accessToken = request.headers().authorization?.slice("Bearer ".length) ?? accessToken))

await step("a visitor is asked to sign in", async () => {
  await page.goto(at.portal)
  await heading(page, "Sign in")
  assert.equal(page.url(), `${at.portal}/#/sign-in`)
  await picture(page, "sign-in")
})

await step("register: what is wrong stands at its input", async () => {
  const sent = requests(desk.context, "POST", "/auth/register")
  await follow(page, "Create an account")
  await heading(page, "Create your account")
  assert.equal(await focused(page), "Create your account")
  await field(page, "E-mail address").fill("not-an-address")
  await field(page, "Password").fill("short")
  await press(page, "Create account")
  await fails(page, "Your name", "Please fill this in.")
  await fails(page, "E-mail address", "This is not an e-mail address.")
  await fails(page, "Password", "Please use at least 8 characters.")
  assert.equal(await focused(page), "name")
  assert.equal(sent.length, 0, "nothing is sent that cannot be right")
  await picture(page, "register-errors")

  await field(page, "Your name").fill("Ana Lima")
  await field(page, "E-mail address").fill(`${"a".repeat(250)}@customer.example`)
  await field(page, "Password").fill(password)
  await press(page, "Create account")
  await fails(page, "E-mail address", "Expected an e-mail address of at most 254 bytes, at most 64 of them before the @.") // the service's own words
  assert.equal(await focused(page), "email")
  assert.equal(await field(page, "Password").getAttribute("aria-invalid"), null)
})

await step("register, and have the mail sent again", async () => {
  await field(page, "E-mail address").fill(ana)
  await field(page, "Company").fill("Lima & Sons")
  await press(page, "Create account")
  await heading(page, "Check your mail")
  await reads(page, ana)
  await picture(page, "check-mail")
  await mail(ana, 1)
  await press(page, "Send the mail again")
  await told(page, `Sent again to ${ana}.`)
})

await step("who has not confirmed the address is told so at sign-in, and so is who registers twice", async () => {
  await follow(page, "Sign in")
  await signIn(page, ana, password)
  await heading(page, "Check your mail")
  await follow(page, "Sign in")
  await follow(page, "Create an account")
  await heading(page, "Create your account")
  await field(page, "Your name").fill("Ana again")
  await field(page, "E-mail address").fill(ana.toUpperCase())
  await field(page, "Password").fill(password)
  await press(page, "Create account")
  await fails(page, "E-mail address", "There is an account with this e-mail address already; log in instead.")
})

await step("the link in the mail confirms the address, once", async () => {
  const letter = await mail(ana, 2)
  assert.equal(letter.subject, "Ana Lima, one step to your Fernhill Cycles account")
  const address = link(letter, "/verify?token=")
  const seen = []
  page.on("request", (request) => seen.push(request))
  await page.goto(address)
  await heading(page, "Your address is confirmed")
  assert.equal(page.url(), `${at.portal}/`, "the token leaves the address bar")
  const token = new URL(address).searchParams.get("token")
  const leaks = seen.filter((request) => !request.isNavigationRequest() && (request.url() + JSON.stringify(request.headers())).includes(token))
  assert.deepEqual(leaks.map((request) => request.url()), [], "and goes into no other address or referrer")
  await picture(page, "verified")
  await page.goto(address)
  await heading(page, "This link does not work")
  await reads(page, "It was used already, or is not complete.")
  await picture(page, "not-verified")
  assert.equal((await mail(ana, 3)).subject, "Welcome to Fernhill Cycles")
})

await step("sign in: wrong, then right", async () => {
  await follow(page, "Sign in")
  await signIn(page, ana, "not her password")
  await warned(page, "The e-mail address or the password is wrong.")
  await picture(page, "sign-in-wrong")
  await signIn(page, ana, password)
  await heading(page, "Your company’s orders")
  await follow(page, "Tickets")
  await heading(page, "Your tickets")
  await reads(page, "Nothing here yet.")
  assert.equal((await stored(page)).length, 43)
  const kept = await page.evaluate(() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie]))
  assert.ok(!kept.includes("eyJ"), `the access token is in memory only: ${kept}`)
  await picture(page, "tickets-none")
})

let benToken
await step("another customer has a ticket", async () => {
  assert.equal((await api("POST", "/auth/register", {body: {email: ben, password, name: "Ben Osei"}})).status, 201)
  const token = new URL(link(await mail(ben, 1), "/verify?token=")).searchParams.get("token")
  assert.equal((await api("POST", "/auth/verify", {body: {token}})).status, 200)
  benToken = (await api("POST", "/auth/login", {body: {email: ben, password}})).data.accessToken
  assert.equal((await api("POST", "/data/ticket", {token: benToken, body: {title: "Ben's own"}})).status, 201)
})

const hostile = `<img src=x onerror="document.title='owned'"> rattles`
await step("a ticket is made, and is text whatever it says", async () => {
  await press(page, "New ticket")
  assert.equal(await focused(page), "title")
  await press(page, "Save")
  await fails(page, "Title", "Please fill this in.")
  await field(page, "Title").fill(hostile)
  assert.equal(await field(page, "Title").getAttribute("aria-invalid"), null, "what is put right is not wrong any more")
  await field(page, "Description").fill("Since the rain on Tuesday.\nOnly uphill.")
  await field(page, "Priority").selectOption("High")
  await picture(page, "ticket-new")
  await press(page, "Save")
  await ticket(page, hostile).getByText("high priority").waitFor()
  assert.equal(await focused(page), hostile)
  assert.equal(await page.locator("li img").count(), 0)
  await told(page, "Your ticket is with us.")
})

await step("it is edited in place; its status is not the customer's to set", async () => {
  await press(page, `Edit ${hostile}`)
  assert.equal(await focused(page), "title")
  await reads(page, "Status: New. We change it as we work on it.")
  assert.equal(await page.locator("[name=status]").count(), 0)
  await field(page, "Title").fill("never mind")
  await field(page, "Title").press("Escape")
  assert.deepEqual(await titles(page), [hostile])
  const patches = requests(desk.context, "PATCH", new URL(await editedURL()).pathname.slice("/public/v1".length))
  await press(page, `Edit ${hostile}`)
  await field(page, "Title").fill("Rear mudguard rattles")
  await field(page, "Priority").selectOption("Normal")
  await picture(page, "ticket-edit")
  await press(page, "Save")
  await ticket(page, "Rear mudguard rattles").getByText("normal priority").waitFor()
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Edit")
  assert.deepEqual(JSON.parse(patches[0].postData()), {title: "Rear mudguard rattles", priority: "normal"}, "only what was changed is sent")
})

async function editedURL() {
  const {data} = await api("GET", "/data/ticket", {token: accessToken})
  assert.equal(data.length, 1, "her own ticket and no other")
  assert.deepEqual(Object.keys(data[0]).slice(4), ["title", "description", "priority", "status", "answer"], "no internal note")
  return `${at.api}/public/v1/data/ticket/${data[0].id}`
}

await step("staff see every ticket, and answer", async () => {
  const {data} = await api("GET", "/data/ticket", {token: at.staffKey})
  assert.deepEqual(data.map(({title}) => title), ["Rear mudguard rattles", "Ben's own"])
  const fields = {status: "in_progress", answer: "It needs a new stay.\nIt will be here on Friday.", internal_note: "warranty?"}
  assert.equal((await api("PATCH", `/data/ticket/${data[0].id}`, {token: at.staffKey, body: fields})).status, 200)
})

await step("a reload keeps the session by a refresh, and shows only the customer's own", async () => {
  const before = await stored(page)
  const refreshes = requests(desk.context, "POST", "/auth/refresh")
  await page.reload()
  await ticket(page, "Rear mudguard rattles").getByText("In progress").waitFor()
  await reads(page, "It will be here on Friday.")
  assert.deepEqual(await titles(page), ["Rear mudguard rattles"])
  assert.equal(refreshes.length, 1)
  assert.notEqual(await stored(page), before)
  await picture(page, "tickets-one")
})

await step("more tickets come page by page, each once", async () => {
  for (let i = 1; i <= 12; i++) {
    assert.equal((await api("POST", "/data/ticket", {token: accessToken, body: {title: `Wheel ${i}`, priority: "low"}})).status, 201)
  }
  await page.reload()
  await ticket(page, "Wheel 12").waitFor()
  assert.equal((await titles(page)).length, 10)
  await press(page, "New ticket") // it is on the last page again
  await field(page, "Title").fill("Bell is gone")
  await press(page, "Save")
  await ticket(page, "Bell is gone").waitFor()
  await press(page, "Load more")
  await ticket(page, "Wheel 1").waitFor()
  assert.equal(await focused(page), "Wheel 2")
  await told(page, "3 more tickets.")
  await press(page, "Load more") // brings only what was made since the first page, and that is there already
  await told(page, "These are all.")
  assert.equal(await page.getByRole("button", {name: "Load more"}).count(), 0)
  const wheels = Array.from({length: 12}, (_, i) => `Wheel ${12 - i}`)
  assert.deepEqual(await titles(page), ["Bell is gone", ...wheels, "Rear mudguard rattles"])
  await picture(page, "tickets-many")
})

await step("a ticket is deleted when asked twice", async () => {
  await press(page, "Delete Bell is gone")
  await page.getByRole("dialog", {name: "Delete this ticket?"}).getByText("“Bell is gone” will be gone for good.").waitFor()
  await picture(page, "delete")
  await page.keyboard.press("Enter") // the harmless button has the focus
  assert.equal((await titles(page)).length, 14)
  await press(page, "Delete Bell is gone")
  await page.getByRole("dialog").getByRole("button", {name: "Delete"}).click()
  await ticket(page, "Bell is gone").waitFor({state: "detached"})
  assert.equal((await titles(page)).length, 13)
})

await step("an access token that is refused is replaced, unseen", async () => {
  const refreshes = requests(desk.context, "POST", "/auth/refresh")
  let refused = 0
  await page.route(`${at.api}/public/v1/data/ticket/*`, async (route) => {
    if (route.request().method() === "PATCH" && refused++ === 0) {
      return route.continue({headers: {...route.request().headers(), authorization: `Bearer ${accessToken.slice(0, -4)}AAAA`}})
    }
    return route.continue()
  })
  await press(page, "Edit Wheel 12")
  await field(page, "Title").fill("Front wheel wobbles")
  await press(page, "Save")
  await ticket(page, "Front wheel wobbles").waitFor()
  await page.unrouteAll()
  assert.deepEqual([refused, refreshes.length], [2, 1])
})

await step("a short Retry-After is waited out", async () => {
  const times = []
  await page.route(`${at.api}/public/v1/data/ticket/*`, (route) => {
    if (route.request().method() !== "PATCH") return route.continue()
    times.push(Date.now())
    if (times.length > 1) return route.continue()
    const headers = {"Access-Control-Allow-Origin": at.portal, "Access-Control-Expose-Headers": "Retry-After", "Retry-After": "1"}
    return route.fulfill({status: 429, headers, json: {error: {code: "RATE_LIMITED", message: "slow down", details: {}}}})
  })
  await press(page, "Edit Front wheel wobbles")
  await field(page, "Title").fill("Front wheel wobbles a lot")
  await press(page, "Save")
  await ticket(page, "Front wheel wobbles a lot").waitFor()
  await page.unrouteAll()
  assert.equal(times.length, 2)
  assert.ok(times[1] - times[0] >= 950, `after ${times[1] - times[0]} ms`)
})

await step("the profile's name is the customer's own", async () => {
  await follow(page, "Profile")
  await heading(page, "Profile")
  await reads(page, ana)
  assert.equal(await field(page, "Company").inputValue(), "Lima & Sons")
  await field(page, "Your name").fill("")
  await press(page, "Save")
  await fails(page, "Your name", "Please fill this in.")
  await field(page, "Your name").fill("Ana Lima-Costa")
  await press(page, "Save")
  await told(page, "Your profile is saved.")
  await picture(page, "profile")
  await page.reload()
  await reads(page, ana)
  assert.equal(await field(page, "Your name").inputValue(), "Ana Lima-Costa")
})

await step("tabs that refresh at once stay signed in, with and without locks", async () => {
  await follow(page, "Tickets")
  let asked = 0
  let answered = 0
  const rounds = at.long ? 4 : 1
  let together = 0 // the most refreshes that were on their way at the same time
  const count = (event, what) => desk.context.on(event, (request) => request.url().endsWith("/auth/refresh") && request.method() === "POST" && what())
  count("request", () => (together = Math.max(together, ++asked - answered)))
  count("requestfinished", () => answered++)
  for (const locks of [true, false]) {
    const tabs = []
    for (let i = 0; i < 3; i++) { // made one by one: at once is what they ask, not how they begin
      const tab = await open(desk.context)
      if (!locks) await tab.addInitScript(() => Object.defineProperty(Navigator.prototype, "locks", {value: undefined}))
      await tab.goto(at.tickets)
      await ticket(tab, "Front wheel wobbles a lot").waitFor()
      tabs.push(tab)
    }
    asked = answered = together = 0
    for (let round = 0; round < rounds; round++) {
      await Promise.all(tabs.map((tab) => tab.goto(`${at.portal}/?round=${round}#/tickets`)))
      await Promise.all(tabs.map((tab) => ticket(tab, "Front wheel wobbles a lot").waitFor()))
    }
    assert.equal(asked, 3 * rounds)
    if (locks) assert.equal(together, 1, "with locks one tab refreshes after the other")
    await Promise.all(tabs.map((tab) => tab.close()))
  }
  await front(page)
  await page.reload()
  await ticket(page, "Front wheel wobbles a lot").waitFor()
})

const phone = await watched({viewport: {width: 390, height: 844}, deviceScaleFactor: 2, isMobile: true, hasTouch: true, colorScheme: "dark"})
const small = phone.page
let oldToken

await step("a forgotten password is replaced through the mail, on a phone", async () => {
  await small.goto(at.portal)
  await heading(small, "Sign in")
  await picture(small, "phone-sign-in")
  await follow(small, "Forgot your password?")
  await heading(small, "Forgot your password?")
  await field(small, "E-mail address").fill(ana)
  await picture(small, "phone-forgot")
  await press(small, "Send the link")
  await heading(small, "Check your mail")
  await reads(small, ana)
  await picture(small, "phone-reset-asked")
  const address = link(await mail(ana, 4), "/reset-password?token=")
  await small.goto(address)
  await heading(small, "Choose a new password")
  assert.equal(small.url(), `${at.portal}/`, "the token leaves the address bar")
  await field(small, "New password").fill("short")
  await press(small, "Set password")
  await fails(small, "New password", "Please use at least 8 characters.")
  await picture(small, "phone-new-password")
  oldToken = await stored(page)
  await field(small, "New password").fill(newPassword)
  await press(small, "Set password")
  await heading(small, "Sign in")
  await reads(small, "Your password is changed. Sign in with the new one.")
  await signIn(small, ana, newPassword)
  await follow(small, "Tickets")
  await ticket(small, "Front wheel wobbles a lot").waitFor()
  await picture(small, "phone-tickets")
  await small.goto(address)
  await field(small, "New password").fill("another password")
  await press(small, "Set password")
  await warned(small, "This link was used already, is too old, or is not complete.")
})

await step("the old password and the old session are worth nothing", async () => {
  assert.equal((await api("POST", "/auth/login", {body: {email: ana, password}})).error.code, "INVALID_CREDENTIALS")
  const refused = await api("POST", "/auth/refresh", {body: {refreshToken: oldToken}})
  assert.deepEqual([refused.status, refused.error.code], [401, "UNAUTHORIZED"])
  await front(page)
  await page.reload()
  await heading(page, "Sign in")
  await reads(page, "Your session has ended. Please sign in again.")
  assert.equal(await stored(page), null)
})

await step("signing out in one tab signs out the other", async () => {
  await small.goto(at.tickets)
  await ticket(small, "Front wheel wobbles a lot").waitFor()
  const second = await open(phone.context)
  await second.goto(at.tickets)
  await ticket(second, "Front wheel wobbles a lot").waitFor()
  const token = await stored(second)
  await front(small)
  const answered = small.waitForResponse((response) => response.url().endsWith("/auth/logout"))
  await press(small, "Sign out")
  await heading(small, "Sign in")
  await heading(second, "Sign in")
  await reads(second, "You have signed out in another tab.")
  await picture(second, "phone-signed-out")
  for (const tab of [small, second]) assert.equal(await tab.locator("li").count(), 0, "nothing is left in the page, hidden or not")
  assert.equal(await stored(second), null)
  assert.equal((await answered).status(), 200)
  assert.equal((await api("POST", "/auth/refresh", {body: {refreshToken: token}})).status, 401)
  await second.goBack()
  await heading(second, "Sign in")
})

await step("signing in in one tab signs in the other, with nothing left of who was there before", async () => {
  const [first, second] = phone.context.pages()
  await follow(second, "Create an account") // a form is not taken away
  await front(first)
  await signIn(first, ben, password)
  await follow(first, "Tickets")
  await ticket(first, "Ben's own").waitFor()
  await heading(second, "Create your account")
  await second.goto(at.tickets)
  await ticket(second, "Ben's own").waitFor()
  assert.deepEqual(await titles(second), ["Ben's own"])
  await press(second, "Sign out")
  await heading(first, "Sign in")
  const third = await open(phone.context)
  await third.goto(at.tickets)
  await heading(third, "Sign in")
  await front(first)
  await signIn(first, ben, password)
  await front(third)
  await ticket(third, "Ben's own").waitFor()
  await press(third, "Sign out")
  await heading(first, "Sign in")
})

await step("too many attempts are told with the time to wait", async () => {
  for (let attempt = 1, code = ""; code !== "TOO_MANY_REQUESTS"; attempt++) { // the new password lifted what was counted before
    assert.ok(attempt <= 10, "attempts are limited")
    code = (await api("POST", "/auth/login", {body: {email: ana, password}})).error.code
  }
  await front(small)
  await signIn(small, ana, "one attempt more")
  await warned(small, "That is too much at once. Please try again in 30 minutes.")
})

await step("a page of another origin gets nothing, while the API answers who asks otherwise", () => stranger({email: ben, password, token: benToken}))
