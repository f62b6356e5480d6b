// A new user's first minute: from the printed address to a key and its first answered call, with every press of the mouse counted.
import assert from 'node:assert/strict'
import { ask, cli, demoTenant, job, open, password, step, tenant, waitForText } from './lib/stage.mjs'

const most = 12

/** counted opens a page whose presses of the mouse are counted, on every page it goes to. */
async function counted() {
  const page = await open()
  const presses = []
  await page.context().exposeBinding('pressed', (_, what) => { presses.push(what) })
  await page.context().addInitScript(() => {
    document.addEventListener('pointerdown', (event) => { if (event.isTrusted) window.pressed((event.target.closest('button, a, label, input') ?? event.target).innerText || event.target.tagName) }, true)
  })
  return { page, presses }
}

/** signInByMouse goes to the printed address and signs in there. */
async function signInByMouse(page, t, email) {
  await page.goto(t.admin)
  await page.getByLabel('E-mail').click()
  await page.keyboard.type(email)
  await page.getByLabel('Password', { exact: true }).click()
  await page.keyboard.type(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
}

/** keyAndCall fills the form of a new key, copies the request that stands beside the token, and makes it. */
async function keyAndCall(page, t, name) {
  await page.keyboard.type(name) // the form's first field has the focus
  await page.getByRole('button', { name: 'Make the key' }).click()
  await page.getByTestId('secret').waitFor()
  await page.getByRole('button', { name: 'Copy the curl' }).click()
  const line = await page.evaluate(() => navigator.clipboard.readText())
  const [, url] = /'(https?:[^']+)'/.exec(line)
  const [, token] = /Authorization: Bearer (svc_api_[0-9a-f]{64})/.exec(line)
  assert.equal(new URL(url).host, new URL(t.origin).host)
  const answer = await ask(t, 'GET', url.slice(t.origin.length), { token })
  assert.equal(answer.status, 200, answer.text)
  await waitForText(page, 'The first request came')
}

function few(presses) {
  console.log(`      ${presses.length} clicks: ${presses.map((p) => p.trim().split('\n')[0]).join(', ')}`)
  assert.ok(presses.length < most, `${presses.length} clicks, expected under ${most}: ${presses.join(', ')}`)
}

export default [
  job('the first minute with the demo', async () => {
    const t = await demoTenant()
    await cli(['key', 'create', '--tenant', t.name, '--user', t.email('sam'), '--name', 'gatehouse demo']) // as "gatehouse demo" does
    const { page, presses } = await counted()
    await step('sign in as the owner, go to the API keys, make one, call', async () => {
      await signInByMouse(page, t, t.email('olivia'))
      await page.getByRole('button', { name: 'Integrations and API' }).click()
      await page.getByRole('link', { name: 'API keys' }).click()
      await page.getByRole('button', { name: 'New key' }).click()
      await page.getByRole('complementary', { name: 'New API key' }).getByLabel('Name').waitFor()
      await keyAndCall(page, t, 'First key')
    })
    await step('in few clicks', () => { few(presses) })
  }),
  job('the first minute with a fresh tenant', async () => {
    const t = await tenant()
    const { page, presses } = await counted()
    await step('sign in, switch the API on, make a key, call', async () => {
      await signInByMouse(page, t, t.email('owner'))
      await page.getByRole('link', { name: 'Open API Config' }).click()
      const on = page.getByRole('switch', { name: 'Public API' })
      await on.waitFor()
      if (!(await on.isChecked())) await on.click()
      await page.getByRole('switch', { name: 'Public API', checked: true }).waitFor()
      await page.getByRole('button', { name: /^Save/ }).click()
      await waitForText(page, /Public API on/)
      await page.getByRole('link', { name: 'Overview' }).click()
      await page.getByRole('link', { name: 'Make a key' }).first().click()
      await page.getByRole('complementary', { name: 'New API key' }).getByLabel('Name').waitFor()
      await keyAndCall(page, t, 'First key')
    })
    await step('in few clicks', () => { few(presses) })
  }),
]
