import assert from 'node:assert/strict'
import { job, open, password, step, tenant, waitForText } from './lib/stage.mjs'

export default job('a staff member signs and out', async () => {
  const t = await tenant()
  const page = await open()
  await step('a wrong password is refused in words, and the password is chosen to be typed again', async () => {
    await page.goto(`${t.admin}/no/such/page?x=1`)
    await page.getByLabel('E-mail').fill(t.email('owner'))
    await page.getByLabel('Password', { exact: true }).fill('not this one')
    await page.keyboard.press('Enter')
    await waitForText(page, 'is wrong')
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('name')), 'password')
  })
  await step('the right one leads back to the address that was asked for', async () => {
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await waitForText(page, 'Nothing is at this address')
    assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, '/admin/no/such/page?x=1')
  })
  await step('the palette opens by keyboard and closes', async () => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find or go to' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('combobox', { name: 'Find or go to' }).waitFor({ state: 'detached' })
  })
  await step('colours are chosen and kept', async () => {
    await page.getByRole('button', { name: /colours and account/ }).click()
    await page.getByRole('menuitemradio', { name: 'Dark' }).click()
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
    await page.reload()
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
  })
  await step('signing out ends the session on the server', async () => {
    const before = (await page.context().cookies()).find((c) => c.name.includes('session') || c.httpOnly)
    assert.ok(before?.httpOnly, 'the session cookie is HttpOnly')
    await page.getByRole('button', { name: /colours and account/ }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.context().addCookies([before])
    await page.goto(t.admin)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })
})
