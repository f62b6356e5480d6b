// A key from its form to its first call and its entry in the audit log; and the same by keyboard alone.
import assert from 'node:assert/strict'
import { ask, demoTenant, job, open, picture, signIn, step, until, waitForText } from './lib/stage.mjs'

/** tokenShown is the token on the page, once. */
async function tokenShown(page) {
  const token = (await page.getByTestId('secret').innerText()).trim()
  assert.match(token, /^svc_api_[0-9a-f]{64}$/)
  return token
}

const byMouse = job('a key is made, used and found in the audit log', async () => {
  const t = await demoTenant()
  const page = await open()
  let token
  await step('sign in and make a key', async () => {
    await signIn(page, t, t.email('olivia'), '/settings/api-keys')
    await page.getByRole('button', { name: 'New key' }).click()
    const form = page.getByRole('complementary', { name: 'New API key' })
    await form.getByLabel('Name').fill('Web <b>shop</b>')
    await form.getByLabel('Requests a minute').fill('0')
    await form.getByRole('button', { name: 'Make the key' }).click()
    await form.getByText('expected 1 to').waitFor()
    await form.getByLabel('Requests a minute').fill('500')
    await form.getByLabel('Addresses').fill('127.0.0.0/8\n')
    await form.getByRole('button', { name: 'Make the key' }).click()
    token = await tokenShown(page)
    assert.ok(await page.getByRole('button', { name: 'Done' }).isDisabled(), 'Done waits for “I have stored it”')
    await picture(page, 'api-keys-made')
  })
  await step('the sample waits for the first call and sees it', async () => {
    await waitForText(page, 'Waiting for the first request')
    assert.equal((await ask(t, 'GET', '/public/v1/me', { token })).status, 200)
    await waitForText(page, 'The first request came')
  })
  await step('leaving asks first, and the token is gone after Done', async () => {
    await page.getByRole('link', { name: 'See it in the audit log' }).click()
    await page.getByRole('button', { name: 'Go back and copy it' }).click()
    await page.getByLabel('I have stored it').check()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByTestId('secret').waitFor({ state: 'detached' })
    assert.ok(!(await page.content()).includes(token), 'the token is on the page after Done')
  })
  await step('its drawer: the last request, a change, both sides of a conflict', async () => {
    await page.getByText('Web <b>shop</b>').first().click()
    const drawer = page.getByRole('complementary', { name: 'API key Web <b>shop</b>' })
    await drawer.getByRole('tab', { name: 'Last requests' }).click()
    await drawer.getByText('/public/v1/me').waitFor()
    await drawer.getByRole('tab', { name: 'Settings' }).click()
    await drawer.getByLabel('Requests a minute').fill('7')
    await drawer.getByRole('button', { name: 'Save changes' }).click()
    await waitForText(page, 'of 7')
    assert.equal((await ask(t, 'GET', '/public/v1/me', { token })).headers['x-ratelimit-limit'], '7')
  })
  await step('delete says what stops, and asks for the name of a live key', async () => {
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('gets 401 from this moment on').waitFor()
    assert.ok(await dialog.getByRole('button', { name: 'Delete the key' }).isDisabled())
    await dialog.getByLabel(/Type .* to go on/).fill('Web <b>shop</b>')
    await dialog.getByRole('button', { name: 'Delete the key' }).click()
    await until('the key is refused', async () => (await ask(t, 'GET', '/public/v1/me', { token })).status === 401)
  })
})

/** tabTo presses Tab until the focused thing has this name. */
async function tabTo(page, name) {
  for (let i = 0; i < 120; i++) {
    const now = await page.evaluate(() => { const e = document.activeElement; return (e?.getAttribute('aria-label') ?? e?.labels?.[0]?.textContent ?? e?.textContent ?? '').trim() })
    if (name.test(now)) return
    await page.keyboard.press('Tab')
  }
  assert.fail(`Tab never came to ${name}`)
}

const byKeyboard = job('a key is made without a mouse', async () => {
  const t = await demoTenant()
  const page = await open()
  await page.goto(`${t.admin}/settings/api-keys`)
  await step('sign in with the keyboard', async () => {
    await page.getByLabel('E-mail').waitFor()
    await tabTo(page, /^E-mail/)
    await page.keyboard.type(t.email('sam'))
    await page.keyboard.press('Tab')
    await tabTo(page, /^Password$/)
    await page.keyboard.type('staff-password-of-tests')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: /API keys/ }).waitFor()
  })
  await step('make a key', async () => {
    await page.getByRole('button', { name: 'New key' }).waitFor()
    await tabTo(page, /^New key$/)
    await page.keyboard.press('Enter')
    await page.getByLabel('Name').waitFor()
    await tabTo(page, /^Name/)
    await page.keyboard.type('By keyboard')
    await page.keyboard.press('Enter')
    const token = await tokenShown(page)
    assert.equal((await ask(t, 'GET', '/public/v1/me', { token })).status, 200)
    await tabTo(page, /^I have stored it$/)
    await page.keyboard.press('Space')
    await tabTo(page, /^Done$/)
    await page.keyboard.press('Enter')
    await page.getByTestId('secret').waitFor({ state: 'detached' })
    await waitForText(page, 'By keyboard')
  })
})

export default [byMouse, byKeyboard]
