// The same page at an origin that the tenant does not list: what CORS keeps from it, and what the page's own policy forbids.

import assert from "node:assert/strict"
import {api, at, browser, field, heading, open, picture, press, stored, warned} from "./stage.mjs"

// stranger tries as a customer who exists; token is an access token of theirs.
export async function stranger({email, password, token}) {
  const context = await browser.newContext()
  const page = await open(context)
  const messages = []
  page.on("console", (message) => messages.push(message.text()))
  await page.goto(at.stranger)
  await heading(page, "Sign in")
  await field(page, "E-mail address").fill(email)
  await field(page, "Password").fill(password)
  await press(page, "Sign in")
  await warned(page, "We cannot reach the service.")
  assert.ok(messages.some((text) => text.includes("blocked by CORS policy")), messages.join("\n"))
  assert.equal(await stored(page), null)
  await picture(page, "stranger")

  const read = (mode) => page.evaluate(([address, how]) => fetch(address, {mode: how}).then(({type}) => type, (error) => error.name),
    [`${at.api}/public/v1/auth/me`, mode])
  assert.equal(await read("cors"), "TypeError", "even a simple request is not readable")
  assert.equal(await read("no-cors"), "opaque", "though it was answered")

  const own = await api("GET", "/data/ticket", {token, origin: at.portal})
  assert.deepEqual([own.status, own.headers.get("access-control-allow-origin")], [200, at.portal])
  const foreign = await api("GET", "/data/ticket", {token, origin: at.stranger})
  assert.deepEqual([foreign.status, foreign.headers.get("access-control-allow-origin")], [200, null])
  assert.deepEqual(foreign.data.map(({title}) => title), ["Ben's own"])
  assert.equal(own.headers.get("access-control-allow-credentials"), null)

  // That the console was looked at is worth something only if a violation is seen there.
  messages.length = 0
  await page.evaluate(() => new Promise((resolve) => {
    const image = new Image()
    image.onerror = resolve
    image.src = "http://elsewhere.example/pixel.png"
  }))
  const asHTML = await page.evaluate(() => {
    try {
      document.body.innerHTML = "<p>text"
      return "taken"
    } catch (error) {
      return error.name
    }
  })
  assert.equal(asHTML, "TypeError", "no script can insert HTML")
  assert.ok(messages.some((text) => text.includes("Content Security Policy") && text.includes("img-src")), messages.join("\n"))
  await context.close()
}
