// The audit log: the gate at which a request stopped, filters that survive a reload, a link that can be shared, a live tail; and the overview of the same calls.
import assert from 'node:assert/strict'
import { ask, cli, demoTenant, job, open, picture, signIn, step, until, waitForText } from './lib/stage.mjs'

async function keyOf(t, who) { return (await cli(['key', 'create', '--tenant', t.name, '--user', t.email(who), '--name', `key of ${who}`])).trim() }

const log = job('what was called is in the log, with its gate', async () => {
  const t = await demoTenant()
  const sam = await keyOf(t, 'sam')
  const made = await ask(t, 'POST', '/public/v1/data/contact', { token: sam, body: { first_name: 'Ada', last_name: '<img src=x onerror=alert(1)>' } })
  assert.equal(made.status, 201, made.text)
  const stopped = await ask(t, 'POST', '/public/v1/data/contact', { token: sam, body: { first_name: 7, last_name: 'x' } })
  assert.equal(stopped.status, 400)
  const page = await open()
  await step('both calls are listed', async () => {
    await signIn(page, t, t.email('olivia'), '/settings/audit?endpoint=/data/*')
    await page.getByRole('grid', { name: 'Audit log' }).waitFor()
    await page.getByText('VALIDATION').first().waitFor()
    await waitForText(page, '2 requests in 24 h')
    await page.locator('canvas').first().waitFor()
    await picture(page, 'audit')
  })
  await step('a row opens with its sentence, its track and the guilty line', async () => {
    await page.getByText('VALIDATION').first().click()
    await waitForText(page, 'Stopped at Body.')
    await page.getByRole('list', { name: 'The gates on its way' }).getByText('Permission').waitFor()
    await page.locator('.src .hl', { hasText: 'first_name' }).waitFor()
    await picture(page, 'audit-open')
  })
  await step('a link to the row shows it to another page', async () => {
    const link = page.url()
    const other = await page.context().newPage()
    await other.goto(link)
    await waitForText(other, 'Stopped at Body.')
    await other.close()
  })
  await step('filters are in the address and survive a reload', async () => {
    await page.getByRole('radiogroup', { name: 'Status' }).getByText('Errors only').click()
    await waitForText(page, '1 request in 24 h')
    await page.reload()
    await waitForText(page, '1 request in 24 h')
    assert.match(page.url(), /status=errors/)
    await page.getByRole('radiogroup', { name: 'Status' }).getByText('All').click()
    await page.getByLabel('Request id, path or IP').fill(made.headers['x-request-id'])
    await waitForText(page, '1 request in 24 h')
    await page.getByRole('row', { name: /\b201 POST / }).waitFor()
    await page.getByLabel('Request id, path or IP').fill('')
  })
  await step('the live tail shows a call as it is made', async () => {
    await page.getByRole('switch', { name: /Live tail/ }).click()
    await page.getByRole('switch', { name: /Live tail/, checked: true }).waitFor()
    await page.getByText('connecting').waitFor({ state: 'detached' })
    // The tail tells of what is made once it listens: a call is made until one is seen.
    await until('a call in the tail', async () => {
      await ask(t, 'GET', '/public/v1/data/contact/live', { token: sam })
      return page.getByRole('row', { name: /contact\/live/ }).first().waitFor({ timeout: 2000 }).then(() => true, () => false)
    })
  })
  await step('at 360 px a request can be looked up', async () => {
    await page.setViewportSize({ width: 360, height: 780 })
    await page.getByText('VALIDATION').first().waitFor()
    const wide = await page.evaluate(() => document.documentElement.scrollWidth)
    assert.ok(wide <= 360, `the page is ${wide} px wide`)
    await picture(page, 'audit-360')
    await page.setViewportSize({ width: 1440, height: 900 })
  })
})

const overview = job('the overview shows the calls and the first steps', async () => {
  const t = await demoTenant()
  const page = await open()
  await step('a new tenant is told what to do next', async () => {
    await signIn(page, t, t.email('olivia'))
    await waitForText(page, 'First steps')
    await page.getByRole('link', { name: 'Make a key' }).first().waitFor()
    await picture(page, 'overview-new')
  })
  await step('a call is counted', async () => {
    const sam = await keyOf(t, 'sam')
    for (let i = 0; i < 3; i++) await ask(t, 'GET', '/public/v1/data/contact', { token: sam })
    await ask(t, 'GET', '/public/v1/data/contact/none', { token: sam })
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.reload()
    await page.getByRole('link', { name: '/data/contact' }).waitFor()
    await waitForText(page, '1, none of them 5xx')
    await page.getByText('First steps').waitFor({ state: 'detached' })
    await page.locator('canvas').nth(1).waitFor()
    await picture(page, 'overview')
  })
  await step('it leads to the requests of an endpoint', async () => {
    await page.getByRole('link', { name: '/data/contact' }).click()
    await page.getByRole('grid', { name: 'Audit log' }).waitFor()
    assert.match(page.url(), /endpoint=/)
  })
  await step('who may not see requests is told so', async () => {
    const other = await open()
    await signIn(other, t, t.email('sam'))
    await waitForText(other, 'manage_endpoints')
  })
})

export default [log, overview]
