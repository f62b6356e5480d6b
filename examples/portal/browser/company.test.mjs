// What the customers of one company share, in a real Chromium: Ana and Ned are of Lima & Sons, Zoe is of Birch Couriers. Staff say
// so, by the API, while the customers are signed in. stage.mjs has the words, portal_test.go starts what it needs.

import assert from "node:assert/strict"
import {
  api, at, described, field, follow, heading, look, member, open, picture, press, reads, requests, row, signIn, step, stored, titles,
  told, warned, watched,
} from "./stage.mjs"

const password = "a basket of bells"
const ana = "ana@lima.example", ned = "ned@lima.example", zoe = "zoe@birch.example"
const orders = "Your company’s orders"
const without = "Your account belongs to no company yet"

// asked gives the data of an answer that must have succeeded.
async function asked(token, method, where, body) {
  const answer = await api(method, where, {token, body})
  assert.ok(answer.status === 200 || answer.status === 201, `${method} ${where}: ${answer.status} ${JSON.stringify(answer.error)}`)
  return answer.data
}

// customer registers somebody, opens the portal in a browser of theirs and signs in.
async function customer(email, name, options = {}) {
  await member(email, name, password)
  const {context, page} = await watched({viewport: {width: 1100, height: 800}, ...options})
  const one = {page, context, email, refreshed: requests(context, "POST", "/auth/refresh"), logins: requests(context, "POST", "/auth/login")}
  context.on("request", (request) => (one.token = request.headers().authorization?.slice("Bearer ".length) ?? one.token))
  await page.goto(at.portal)
  await signIn(page, email, password)
  await heading(page, orders)
  return one
}

// userID finds a customer by the address, as staff do.
const userID = async (key, email) => (await asked(key, "GET", `/data/user?filter[email]=${encodeURIComponent(email)}`))[0].id

// belongs says which company a customer is of; null is none.
async function belongs(key, email, account) {
  const user = await asked(key, "PATCH", `/data/user/${await userID(key, email)}`, {account})
  assert.equal(user.account, account)
}

const shop = {} // companies, orders and lines by name
await step("staff have the orders of two companies", async () => {
  for (const [name, numbers] of [["Lima & Sons", ["FC-1", "FC-2"]], ["Birch Couriers", ["FC-3"]]]) {
    shop[name] = (await asked(at.staffKey, "POST", "/data/account", {name})).id
    for (const number of numbers) {
      const fields = {number, account: shop[name], status: "received", margin: 40, reference: `${number} of ${name}`}
      shop[number] = (await asked(at.staffKey, "POST", "/data/order", fields)).id
      for (const [item, quantity, price] of [[`${number} chain`, 12, 24.5], [`${number} saddle`, 2, 61]]) {
        shop[item] = (await asked(at.staffKey, "POST", "/data/order_line", {order: shop[number], item, quantity, price})).id
      }
    }
  }
})

let a, n, z
await step("who is of no company sees no orders, and a page that says so", async () => {
  a = await customer(ana, "Ana Lima")
  await a.page.getByRole("heading", {level: 2, name: without}).waitFor()
  await reads(a.page, "only we can say which company you are of")
  assert.deepEqual(await titles(a.page), [])
  await picture(a.page, "orders-no-company")
  for (const entity of ["order", "order_line"]) assert.deepEqual(await asked(a.token, "GET", `/data/${entity}`), [])
})

await step("nobody says of themselves which company they are of", async () => {
  const mine = await userID(a.token, ana)
  const refused = await api("PATCH", `/data/user/${mine}`, {token: a.token, body: {account: shop["Lima & Sons"]}})
  assert.deepEqual([refused.status, Object.keys(refused.error.details.fields)], [403, ["account"]])
  const body = {email: "eve@birch.example", password, name: "Eve", account: shop["Lima & Sons"], company: "Lima & Sons"}
  assert.equal((await api("POST", "/auth/register", {body})).status, 201)
  const eve = await asked(at.staffKey, "GET", "/data/user?filter[email]=eve@birch.example")
  assert.deepEqual([eve[0].account, eve[0].company], [null, "Lima & Sons"])
})

await step("staff give the company, and its orders are there without a new login", async () => {
  await belongs(at.staffKey, ana, shop["Lima & Sons"])
  const before = await stored(a.page)
  await press(a.page, "Refresh")
  await row(a.page, "FC-1").getByText("FC-1 of Lima & Sons").waitFor()
  assert.deepEqual(await titles(a.page), ["FC-2", "FC-1"])
  assert.equal(await a.page.getByText(without).filter({visible: true}).count(), 0)
  assert.equal(await stored(a.page), before)
  assert.deepEqual([a.logins.length, a.refreshed.length], [1, 0])
  await picture(a.page, "orders")
})

await step("a colleague, of whom the shop's key says it, sees the same orders", async () => {
  n = await customer(ned, "Ned Lima", {viewport: {width: 390, height: 844}, deviceScaleFactor: 2, isMobile: true, hasTouch: true, colorScheme: "dark"})
  await belongs(at.shopKey, ned, shop["Lima & Sons"])
  await press(n.page, "Refresh")
  await row(n.page, "FC-1").waitFor()
  assert.deepEqual(await titles(n.page), await titles(a.page))
  await picture(n.page, "phone-orders")
})

await step("an order has an address, and its lines", async () => {
  await follow(a.page, "FC-1")
  await heading(a.page, "Order FC-1")
  assert.equal(a.page.url(), `${at.portal}/#/orders/${shop["FC-1"]}`)
  assert.equal(await a.page.title(), "Order FC-1 · Fernhill Cycles")
  assert.deepEqual(await a.page.locator("tbody tr td:first-child").allInnerTexts(), ["FC-1 chain", "FC-1 saddle"])
  assert.match(await a.page.locator('[data-is="total"]').innerText(), /416/)
  assert.equal(await a.page.getByText("40", {exact: true}).count(), 0, "no margin")
  await picture(a.page, "order")
  await a.page.reload()
  await heading(a.page, "Order FC-1")
})

await step("what one changes the other sees, and keeps when they change something else", async () => {
  look(n.page)
  await n.page.goto(`${at.portal}/#/orders/${shop["FC-1"]}`)
  await heading(n.page, "Order FC-1")
  look(a.page)
  await field(a.page, "Note for the delivery").fill("Ring twice, <b>loud</b>")
  await press(a.page, "Save")
  await told(a.page, "Saved. Your colleagues see it too.")
  look(n.page)
  const sent = requests(n.context, "PATCH", `/data/order/${shop["FC-1"]}`)
  await field(n.page, "Your reference").fill("PO 4711")
  await press(n.page, "Save") // the note is not there yet, and not sent
  await told(n.page, "Saved. Your colleagues see it too.")
  assert.deepEqual(JSON.parse(sent[0].postData()), {reference: "PO 4711"})
  assert.equal(await field(n.page, "Note for the delivery").inputValue(), "Ring twice, <b>loud</b>")
  await picture(n.page, "phone-order")
  look(a.page)
  await follow(a.page, "All orders")
  await row(a.page, "FC-1").getByText("PO 4711").waitFor()
})

await step("the rest of an order is not theirs to change, nor are its lines, nor is it theirs to make or give away", async () => {
  const order = `/data/order/${shop["FC-1"]}`, line = `/data/order_line/${shop["FC-1 chain"]}`
  for (const [method, where, body, status] of [
    ["PATCH", order, {status: "shipped"}, 403], ["PATCH", order, {account: shop["Birch Couriers"]}, 403], ["PATCH", order, {margin: 0}, 400],
    ["DELETE", order, undefined, 403], ["POST", "/data/order", {number: "FC-9"}, 403], ["POST", `${order}/shares`, {user: zoe, access: "read"}, 403],
    ["PATCH", line, {price: 1}, 403], ["DELETE", line, undefined, 403],
    ["POST", "/data/order_line", {order: shop["FC-1"], item: "Bell", quantity: 1, price: 1}, 403],
  ]) {
    assert.equal((await api(method, where, {token: a.token, body})).status, status, `${method} ${where}`)
  }
  const kept = await asked(at.staffKey, "GET", order)
  assert.deepEqual([kept.status, kept.account, kept.margin], ["received", shop["Lima & Sons"], 40])
})

await step("a customer of another company sees that company's orders, and at the first one's address nothing", async () => {
  z = await customer(zoe, "Zoe Birch")
  await belongs(at.staffKey, zoe, shop["Birch Couriers"])
  await press(z.page, "Refresh")
  await row(z.page, "FC-3").waitFor()
  assert.deepEqual(await titles(z.page), ["FC-3"])
  for (const id of [shop["FC-1"], "01a1fcd5-0000-7000-8000-000000000000"]) { // the second is nobody's
    await z.page.goto(`${at.portal}/#/orders/${id}`)
    await heading(z.page, "No such order")
    assert.equal(await described(z.page.getByRole("heading", {level: 1})), "There is no such order, or it is not one of your company’s.")
    assert.ok(!/Lima|FC-1/.test(await z.page.evaluate(() => document.documentElement.textContent)))
    await follow(z.page, "All orders")
    await row(z.page, "FC-3").waitFor()
  }
  await picture(z.page, "orders-other")
})

// attempts are requests of one who may not see FC-1: by its address, by filters, through its lines, its company and its shares.
function attempts() {
  const first = shop["FC-1"], line = shop["FC-1 chain"], company = shop["Lima & Sons"]
  return [
    ["GET", `/data/order/${first}`], ["GET", `/data/order_line/${line}`], ["GET", `/data/account/${company}`], ["GET", "/data/account"],
    ["GET", "/data/order"], ["GET", "/data/order?limit=200"], ["GET", "/data/order_line?limit=200"], ["GET", "/data/user"],
    ["GET", "/data/order?filter[number]=FC-1"], ["GET", `/data/order?filter[account]=${company}`], ["GET", "/data/order?filter[status]=received"],
    ["GET", `/data/order?filter[account]=${company}&filter[number]=FC-1`], ["GET", `/data/order_line?filter[order]=${first}`],
    ["GET", `/data/order/${first}?include=order_line`], ["GET", "/data/order?include=order_line"], ["GET", "/data/order_line?include=order"],
    ["GET", `/data/order/${first}/shares`], ["POST", `/data/order/${first}/shares`, {user: zoe, access: "edit"}],
    ["PATCH", `/data/order/${first}`, {delivery_note: "to me"}], ["DELETE", `/data/order/${first}`],
    ["PATCH", `/data/order_line/${line}`, {order: shop["FC-3"]}], ["DELETE", `/data/order_line/${line}`],
    ["PATCH", `/data/order/${shop["FC-3"]}`, {account: company}],
    ["POST", "/data/order_line", {order: first, item: "Bell", quantity: 1, price: 1}],
  ]
}

// secrets are what stands in the orders of Lima & Sons.
const secrets = /FC-[12]\b|Lima & Sons|PO 4711|Ring twice/

// nothing makes all attempts from within a customer's page and checks that no answer has anything of the company.
async function nothing(one) {
  for (const [method, where, body] of attempts()) {
    const [status, text] = await one.page.evaluate(async ([address, method, body, token]) => {
      const headers = {"Content-Type": "application/json", Authorization: `Bearer ${token}`}
      const response = await fetch(address, {method, headers, body: JSON.stringify(body)})
      return [response.status, await response.text()]
    }, [`${at.api}/public/v1${where}`, method, body, one.token])
    assert.ok(!secrets.test(text.replaceAll(one.email, "")), `${method} ${where}: ${text}`)
    const allowed = method === "GET" ? [200, 400, 403, 404] : [400, 403, 404]
    assert.ok(allowed.includes(status), `${method} ${where}: ${status} ${text}`)
  }
}

await step("nor by any request: not by id, filter, include, line, share, or a change", async () => {
  assert.ok(secrets.test(JSON.stringify(await asked(a.token, "GET", `/data/order_line?filter[order]=${shop["FC-1"]}`))), "the secrets are in what Ana reads")
  await nothing(z)
  const unseen = await api("GET", `/data/order/${shop["FC-1"]}`, {token: z.token})
  const absent = await api("GET", "/data/order/01a1fcd5-0000-7000-8000-000000000000", {token: z.token})
  assert.deepEqual([unseen.status, unseen.error], [absent.status, absent.error])
  assert.equal((await asked(at.staffKey, "GET", `/data/order_line?filter[order]=${shop["FC-1"]}`)).length, 2)
})

await step("staff take the company away, and the orders are gone: in the list, at their address, and in a form that is open", async () => {
  look(a.page)
  await follow(a.page, "FC-1")
  await heading(a.page, "Order FC-1")
  await belongs(at.staffKey, ana, null)
  await field(a.page, "Your reference").fill("PO 4712")
  await press(a.page, "Save")
  await warned(a.page, "This order is not open to you any more, and nothing was saved.")
  assert.equal(await field(a.page, "Your reference").inputValue(), "PO 4712", "the words are kept")
  await a.page.reload()
  await heading(a.page, "No such order")
  await follow(a.page, "All orders")
  await a.page.getByRole("heading", {level: 2, name: without}).waitFor()
  assert.deepEqual(await titles(a.page), [])
  await nothing(a)
  assert.equal(a.logins.length, 1)
  look(n.page)
  await follow(n.page, "All orders")
  await row(n.page, "FC-1").getByText("PO 4711").waitFor()
})

await step("who moves to another company has that one's orders and none of the first", async () => {
  look(a.page)
  await belongs(at.shopKey, ana, shop["Birch Couriers"])
  await press(a.page, "Refresh")
  await row(a.page, "FC-3").waitFor()
  assert.deepEqual(await titles(a.page), ["FC-3"])
  await nothing(a)
})

await step("an order that moves to another company moves from customer to customer", async () => {
  await asked(at.staffKey, "PATCH", `/data/order/${shop["FC-2"]}`, {account: shop["Birch Couriers"]})
  await press(a.page, "Refresh")
  await row(a.page, "FC-2").waitFor()
  look(n.page)
  await press(n.page, "Refresh")
  await row(n.page, "FC-1").waitFor()
  assert.deepEqual([await titles(a.page), await titles(n.page)], [["FC-3", "FC-2"], ["FC-1"]])
})

await step("who is sent to sign in at an order's address arrives there, and signing out leaves nothing in the page", async () => {
  const address = `${at.portal}/#/orders/${shop["FC-1"]}`
  await n.page.goto(address)
  await heading(n.page, "Order FC-1")
  const second = await open(n.context)
  await second.goto(at.portal)
  await row(second, "FC-1").waitFor()
  await press(second, "Sign out")
  look(n.page)
  await heading(n.page, "Sign in")
  for (const tab of [n.page, second]) {
    const left = await tab.evaluate(() => document.body.textContent + [...document.querySelectorAll("input, textarea")].map((input) => input.value))
    assert.ok(!secrets.test(left), "nothing of the company is left in the page")
  }
  await second.close()
  await n.page.goto(address)
  await signIn(n.page, ned, password)
  await heading(n.page, "Order FC-1")
  assert.equal(n.page.url(), address)
})
