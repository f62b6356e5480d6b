// The stage of the console's browser tests: tenants, requests without a browser, watched pages and what they must not say.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { chromium } from 'playwright-core'

/** What internal/consoletest started: port of the server, backstage for commands and mails, the browser, where pictures go. */
export const at = JSON.parse(process.env.CONSOLE_TEST)

export const password = 'staff-password-of-tests'

let browser
/** launch starts the one browser of the process. */
export async function launch() {
  browser ??= await chromium.launch({ executablePath: at.chromium, args: ['--host-resolver-rules=MAP *.localhost 127.0.0.1'] })
  return browser
}
export async function closeBrowser() { await browser?.close() }

/** cli runs a command of the program on the test's data and gives what it printed; a failure of the command is an error. */
export async function cli(args, stdin = '') {
  const response = await fetch(`${at.backstage}/cli`, { method: 'POST', body: JSON.stringify({ args, stdin }) })
  const said = await response.json()
  assert.equal(said.code, 0, `gatehouse ${args.join(' ')}: ${said.stderr}`)
  return said.stdout
}

/** mail waits for the n-th mail to an address, from 1: {subject, text}. */
export async function mail(to, n = 1) {
  const response = await fetch(`${at.backstage}/mail?to=${encodeURIComponent(to)}&n=${n}`)
  assert.equal(response.status, 200, `mail ${n} to ${to}: ${await response.clone().text()}`)
  return response.json()
}

let count = 0

/**
 * tenant makes a fresh one and gives {name, host, origin, admin, email(local)}. manifest is what stands after the head, as text;
 * users without a password get the password of tests. Without a manifest there is one owner: owner@….
 */
export async function tenant(manifest) {
  const name = `t${process.pid}n${++count}`
  const host = `${name}.localhost`
  const origin = `http://${host}:${at.port}`
  const rest = manifest ?? `users:\n  - {email: owner@${name}.example, name: Olivia Hart, owner: true}\n`
  const users = rest.replaceAll('@demo.example', `@${name}.example`)
    .replace(/^( {2}- \{email: (?:(?!password:).)*)\}$/gm, (line, head) => (head.includes('type: external') ? line : `${head}, password: ${password}}`))
  await cli(['apply', '-f', '-'], `tenant: ${name}\ndisplay_name: Brightwater Supplies\nhosts: [${host}]\nbase_url: ${origin}\n${users}`)
  return { name, host, origin, admin: `${origin}/admin`, email: (who) => `${who}@${name}.example` }
}

/** demoTenant is a fresh tenant with all that the demo's manifest has: olivia owns it; mia, sam, rosa and uma are staff. */
export async function demoTenant() {
  const text = readFileSync(path.join(import.meta.dirname, '../../../examples/demo/manifest.yaml'), 'utf8')
  return tenant(text.slice(text.indexOf('public_api:')))
}

/** ask makes one request to a tenant without a browser: {status, headers, body, text}. */
export function ask(t, method, where, { token, body, headers = {} } = {}) {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const request = http.request({
      host: '127.0.0.1', port: at.port, method, path: where,
      headers: { Host: `${t.host}:${at.port}`, ...(text === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }), ...(token ? { Authorization: `Bearer ${token}` } : {}), ...headers },
    }, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => {
        const answer = Buffer.concat(chunks).toString()
        let parsed
        try { parsed = JSON.parse(answer) } catch { parsed = undefined }
        resolve({ status: response.statusCode, headers: response.headers, text: answer, body: parsed })
      })
    })
    request.on('error', reject)
    request.end(text)
  })
}

/** until asks again until the answer is true, and gives it; the deadline is generous and the words say what was waited for. */
export async function until(what, work, seconds = 60) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const got = await work()
    if (got) return got
    assert.ok(Date.now() < end, `waited ${seconds} s for: ${what}`)
    await new Promise((resolve) => { setTimeout(resolve, 50) })
  }
}

/** The complaints of all pages of the running script: console errors, uncaught errors, violations of the security policy. */
let complaints = []
let shown

/**
 * open makes a browser context of its own and a page that is watched. Chromium notes each refusal of the API on its console:
 * that is no complaint. expected is a RegExp of console texts that a step brings about itself.
 */
export async function open({ width = 1440, height = 900, colorScheme = 'light', expected, ...options } = {}) {
  const context = await (await launch()).newContext({ viewport: { width, height }, colorScheme, reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'], ...options })
  context.setDefaultTimeout(60_000)
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => { console.error(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`) })
  })
  context.on('page', (page) => {
    page.on('console', (message) => {
      const refused = /^Failed to load resource: the server responded with a status of [45]\d\d /.test(message.text()) && message.location().url.includes('/admin/v1/')
      if (refused || expected?.test(message.text())) return
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(`${message.type()}: ${message.text()} (${message.location().url})`)
    })
    page.on('pageerror', (error) => complaints.push(`uncaught: ${error.stack}`))
  })
  const page = await context.newPage()
  shown = page
  return page
}

/** look says which page a failure is about. */
export function look(page) { shown = page; return page }

/** signIn goes to an address of the console and signs in there, as a person does. where is a path under /admin. */
export async function signIn(page, t, email, where = '/', word = password) {
  await page.goto(t.admin + where)
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(word)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
}

/** waitForText waits until the page shows a text. */
export async function waitForText(page, text) { await page.getByText(text).first().waitFor() }

/** picture saves a screenshot and gives its path. */
export async function picture(page, name, options = {}) {
  const file = path.join(at.pictures, `${at.engine}-${name}.png`)
  await page.screenshot({ path: file, ...options })
  return file
}

/** job is a script: its name and what it does. A failure prints the page's text and saves its picture. */
export function job(name, work) { return { name, work } }

/** step is one part of a job; it tells how long it took, and fails on any complaint so far. */
export async function step(name, work) {
  const start = Date.now()
  await work()
  const said = complaints
  complaints = []
  assert.deepEqual(said, [], `the console at “${name}”`)
  console.log(`    ${name} (${Date.now() - start} ms)`)
}

/** runJob runs one job; it gives whether it came to its end. */
export async function runJob(file, { name, work }) {
  const start = Date.now()
  complaints = []
  shown = undefined
  console.log(`  ${file}: ${name}`)
  try {
    await work()
    assert.deepEqual(complaints, [], 'the console')
    console.log(`  done (${Date.now() - start} ms)`)
    return true
  } catch (error) {
    console.log(`  FAILED ${file}: ${error.stack}\n  console: ${complaints.join('\n')}`)
    if (shown && !shown.isClosed()) {
      console.log(`  at ${shown.url().slice(0, 300)}`)
      console.log((await shown.locator('body').innerText().catch(() => '')).replace(/^/gm, '  | '))
      console.log(`  picture: ${await picture(shown, `failure-${file}`).catch((e) => e.message)}`)
    }
    return false
  } finally {
    for (const context of (await launch()).contexts()) await context.close()
  }
}
