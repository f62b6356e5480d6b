import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { job, look, mail, open, password, signIn, step, tenant, waitForText } from './lib/stage.mjs'

/** totp is the code of an authenticator app, as RFC 6238 has it: SHA-1, 30 s, six figures. */
function totp(secret, at = Date.now()) {
  const bits = [...secret.replace(/=+$/, '')].map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('')
  const key = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)))
  const hash = createHmac('sha1', key).update(counter).digest()
  const offset = hash[19] & 15
  return String((hash.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

export default job('a session that ends over an edit, a second factor, a forgotten password, ended sessions', async () => {
  const t = await tenant()
  const owner = t.email('owner')
  const page = await open()
  await step('a session that ends asks over the page, and the page goes on', async () => {
    await signIn(page, t, owner, '/account')
    await page.getByLabel('Current password').fill('typed before the session ended')
    await page.getByLabel('New password').fill('a new password of tests')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Change the password' }).click()
    const dialog = page.getByRole('dialog', { name: 'Sign in to go on' })
    await dialog.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await page.getByLabel('New password').inputValue(), 'a new password of tests')
    // The call was repeated: what is refused now is the wrong current password, not the session.
    await page.locator('.help.bad').first().waitFor()
  })
  let secret
  const codes = []
  await step('a second factor is set up, and its recovery codes are shown once', async () => {
    await page.getByLabel('Your password').fill(password)
    await page.getByRole('button', { name: 'Set up a second factor' }).click()
    await page.getByAltText(/QR code/).waitFor()
    secret = (await page.locator('.enrol .id > span').first().textContent()).trim()
    await page.getByLabel('Type the code that it shows').fill(totp(secret))
    await page.getByRole('button', { name: 'Check the code and turn it on' }).click()
    await page.getByTestId('recovery-codes').locator('li').first().waitFor()
    codes.push(...await page.getByTestId('recovery-codes').locator('li').allTextContents())
    assert.ok(codes.length >= 5, `recovery codes: ${codes.length}`)
    assert.ok(await page.getByRole('button', { name: 'Done' }).isDisabled(), 'Done is off until they are stored')
    await page.getByLabel('I have stored them').check()
    await page.getByRole('button', { name: 'Done' }).click()
    await waitForText(page, 'On, with')
  })
  await step('signing in asks for it, and a recovery code will do', async () => {
    const other = look(await open())
    await other.goto(t.admin)
    await other.getByLabel('E-mail').fill(owner)
    await other.getByLabel('Password', { exact: true }).fill(password)
    await other.keyboard.press('Enter')
    await other.getByLabel('Code').fill('000000')
    await other.keyboard.press('Enter')
    await other.locator('.help.bad').waitFor()
    await other.getByLabel('Code').fill(codes[0])
    await other.keyboard.press('Enter')
    await other.getByRole('navigation', { name: 'Main' }).waitFor()
  })
  await step('the other session is listed and ended', async () => {
    look(page)
    await page.goto(`${t.admin}/settings/sessions`)
    await page.getByRole('table', { name: 'Sessions of the staff' }).waitFor()
    await page.getByRole('button', { name: /^End the session of/ }).first().click()
    await waitForText(page, 'The session has ended.')
  })
  await step('a forgotten password is set anew by the link of the mail', async () => {
    const fresh = await tenant()
    const other = look(await open())
    await other.goto(`${fresh.admin}/sign-in`)
    await other.getByRole('link', { name: 'Forgot it?' }).click()
    await other.getByRole('heading', { name: 'Forgotten password' }).waitFor() // the page before has such a field, too
    await other.getByLabel('E-mail').fill(fresh.email('owner'))
    await other.getByRole('button', { name: 'Send the link' }).click()
    await waitForText(other, 'Look into your mail')
    const letter = await mail(fresh.email('owner'))
    await other.goto(/https?:\/\/\S+/.exec(letter.text)[0])
    await other.getByLabel('New password').fill('another password of tests')
    await other.getByRole('button', { name: 'Set the password' }).click()
    await waitForText(other, 'The password is set')
    assert.equal(new URL(other.url()).search, '', 'the token is out of the address')
    await signIn(other, fresh, fresh.email('owner'), '/account', 'another password of tests')
  })
})
