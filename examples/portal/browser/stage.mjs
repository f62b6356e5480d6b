// The stage of the story: where things are, the browsers, and the words that the steps are told in.

import assert from "node:assert/strict"
import {execFile} from "node:child_process"
import path from "node:path"
import {promisify} from "node:util"
import {chromium} from "playwright-core"

export const at = JSON.parse(process.env.PORTAL_TEST)
at.tickets = `${at.portal}/#/tickets`

// api asks the server without a browser.
export async function api(method, where, {body, token, origin} = {}) {
  const headers = {"Content-Type": "application/json"}
  if (token) headers.Authorization = `Bearer ${token}`
  if (origin) headers.Origin = origin
  const response = await fetch(`${at.api}/public/v1${where}`, {method, headers, body: JSON.stringify(body)})
  return {status: response.status, headers: response.headers, ...(await response.json())}
}

// mail waits for the n-th mail to an address.
export async function mail(to, n) {
  const response = await fetch(`${at.mails}/?to=${encodeURIComponent(to)}&n=${n}`)
  assert.equal(response.status, 200, `mail ${n} to ${to}`)
  return response.json()
}

// link is the only address of that path in a mail; its text and its HTML have the same.
export function link(letter, where) {
  const found = letter.text.match(/http:\/\/\S+/g).filter((one) => one.startsWith(at.portal + where))
  assert.equal(found.length, 1, letter.text)
  assert.ok(letter.html.includes(`href="${found[0]}"`), letter.html)
  return found[0]
}

// The story is told in Chromium without its windows, which takes half of the work: beside other tests a page gets little of the
// processor, on Linux the less the more sessions compute (each connection of a PostgreSQL is one). What it lacks, pages that are
// kept when one leaves them, has whole.
export const browser = await chromium.launch({executablePath: at.headless})
export const whole = () => chromium.launch({executablePath: at.chromium, ignoreDefaultArgs: ["--disable-back-forward-cache"]})
const complaints = []
let shown // the page that a failure tells of
const pending = new Map() // the requests under way, by when they began

// watched makes a browser of its own with a page, whose console is looked at. That the API refuses something is part of the
// story, and Chromium notes it; all else is a complaint, but for the failures that a step makes itself (expected).
export async function watched({inside = browser, expected, ...options} = {}) {
  const context = await inside.newContext({reducedMotion: "reduce", ...options})
  context.setDefaultTimeout(10_000)
  context.on("request", (request) => pending.set(request, Date.now()))
  for (const ended of ["requestfinished", "requestfailed"]) context.on(ended, (request) => pending.delete(request))
  context.on("page", (page) => {
    page.on("console", (message) => {
      const refused = /^Failed to load resource: the server responded with a status of 4\d\d /.test(message.text())
      if (expected?.test(message.text())) return
      if (message.type() === "warning" || (message.type() === "error" && !(refused && message.location().url.startsWith(at.api)))) {
        complaints.push(`${message.type()}: ${message.text()} (${message.location().url})`)
      }
    })
    page.on("pageerror", (error) => complaints.push(`uncaught: ${error.stack}`))
  })
  return {context, page: await open(context)}
}

export async function open(context) {
  return look(await context.newPage())
}

// look says which page the story is about now.
export function look(page) {
  return (shown = page)
}

// front brings a page to the front of its browser. In one behind another a click takes two seconds: such pages are drawn once a
// second, and a click waits until what it is for stands still.
export async function front(page) {
  look(page)
  await page.bringToFront()
}

export async function step(name, work) {
  const start = Date.now()
  try {
    await work()
    assert.deepEqual(complaints, [], "the console")
  } catch (error) {
    console.log(`FAILED ${name}\n${error.stack}\nconsole: ${complaints.join("\n")}\n${shown.url()}`)
    console.log(await shown.locator("main").innerText().catch(() => ""))
    for (const [request, begun] of pending) console.log(`unanswered for ${Date.now() - begun} ms: ${request.method()} ${request.url()}`)
    await shown.screenshot({path: path.join(at.failures, "failure.png"), fullPage: true}).catch(() => {})
    await browser.close()
    process.exit(1)
  }
  console.log(`${name} (${Date.now() - start} ms)`)
}

// picture keeps what a view looks like, when somebody wants the pictures: they take a good part of the test's time.
export const picture = async (page, name) => at.pictures && page.screenshot({path: path.join(at.pictures, `${name}.png`), fullPage: true})
export const heading = (page, name) => page.getByRole("heading", {level: 1, name, exact: true}).waitFor()
export const press = (page, name) => page.getByRole("button", {name, exact: true}).click()
export const follow = (page, name) => page.getByRole("link", {name, exact: true}).click()
export const field = (page, label) => page.getByLabel(label).and(page.locator("input, textarea, select")).filter({visible: true})
export const reads = (page, text) => page.getByText(text).filter({visible: true}).waitFor()
export const told = (page, text) => page.getByRole("status").getByText(text).waitFor()
export const warned = (page, text) => page.getByRole("alert").getByText(text).waitFor()
export const focused = (page) => page.evaluate(() => document.activeElement.name || document.activeElement.textContent.trim())
export const stored = (page) => page.evaluate(() => localStorage.getItem("gatehouse.refreshToken"))
export const titles = (page) => page.getByRole("listitem").getByRole("heading", {level: 2}).allInnerTexts()
export const row = (page, title) => page.getByRole("listitem").filter({has: page.getByRole("heading", {level: 2, name: title, exact: true})})
export const ticket = row

// fails waits until an input is marked, and says what is told of it.
export async function fails(page, label, reason) {
  const input = field(page, label)
  await reads(page, reason)
  assert.equal(await input.getAttribute("aria-invalid"), "true")
  const ids = (await input.getAttribute("aria-describedby")).split(" ")
  const texts = await Promise.all(ids.map((id) => page.locator(`#${id}`).innerText()))
  assert.ok(texts.includes(reason), `${label} is described by ${texts}`)
}

export async function signIn(page, email, password) {
  await heading(page, "Sign in")
  await field(page, "E-mail address").fill(email)
  await field(page, "Password").fill(password)
  await field(page, "Password").press("Enter")
}

// described is what a screen reader adds to a heading or an input: the texts that aria-describedby names.
export async function described(locator) {
  const ids = ((await locator.getAttribute("aria-describedby")) ?? "").split(" ").filter(Boolean)
  return (await Promise.all(ids.map((id) => locator.page().locator(`#${id}`).textContent()))).join(" ")
}

// command runs gatehouse on the data of the running server.
export async function command(...args) {
  await promisify(execFile)(at.program, [...args, "--tenant", "portal", ...at.flags])
}

// member registers a customer and confirms the address, without a browser.
export async function member(email, name, password) {
  assert.equal((await api("POST", "/auth/register", {body: {email, password, name}})).status, 201)
  const token = new URL(link(await mail(email, 1), "/verify?token=")).searchParams.get("token")
  assert.equal((await api("POST", "/auth/verify", {body: {token}})).status, 200)
  await mail(email, 2) // the welcome
}

// refusal is an answer of the API in the server's place, for page.route.
export function refusal(status, code, retryAfter) {
  const headers = {
    "Access-Control-Allow-Origin": at.portal, "Access-Control-Expose-Headers": "Retry-After, X-Request-Id", "Retry-After": String(retryAfter),
  }
  return {status, headers, json: {error: {code, message: "not now", details: {}}}}
}

// requests collects the requests of a browser to a path of the API.
export function requests(context, method, where) {
  const seen = []
  context.on("request", (request) => {
    if (request.method() === method && new URL(request.url()).pathname === `/public/v1${where}`) seen.push(request)
  })
  return seen
}
