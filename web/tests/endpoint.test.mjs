import assert from 'node:assert/strict'
import { ask, cli, demoTenant, job, open, signIn, step, until, waitForText } from './lib/stage.mjs'

export default job('a webhook with a token: made, called, its failure run again', async () => {
  const t = await demoTenant()
  await cli(['apply', '-f', '-'], `tenant: ${t.name}\nlogic_components:\n  - {name: greet, source: "export default ({name}) => ({hello: name.length})"}\n`)
  const page = await open()
  await signIn(page, t, t.email('olivia'), '/settings/endpoints')
  let token
  await step('an endpoint with a secret token is published', async () => {
    await page.getByRole('button', { name: 'New endpoint' }).first().click()
    await page.getByLabel('Slug of the new endpoint').fill('hook')
    await page.keyboard.press('Enter')
    await page.getByLabel('Logic component', { exact: true }).last().click()
    await page.getByRole('option', { name: 'greet' }).click()
    await page.getByRole('radio', { name: 'Secret token' }).check({ force: true })
    await page.getByRole('button', { name: /^Publish/ }).click()
    await waitForText(page, 'There is no webhook token yet')
  })
  await step('its token is shown once, with a request that works', async () => {
    await page.getByRole('button', { name: 'Make a token' }).click()
    token = await page.getByTestId('secret').innerText()
    assert.match(token, /^svc_whk_/)
    assert.ok(await page.getByRole('button', { name: 'Done' }).isDisabled())
    await page.getByLabel('I have stored it').check()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByTestId('secret').waitFor({ state: 'detached' })
    assert.ok(!(await page.content()).includes(token), 'the token is gone from the page')
    const answer = await ask(t, 'POST', '/public/v1/custom/hook', { headers: { 'X-Webhook-Token': token, 'Idempotency-Key': 'first' }, body: { name: 'Ada' } })
    assert.deepEqual([answer.status, answer.body.data.hello], [200, 3])
    await ask(t, 'POST', '/public/v1/custom/hook', { headers: { 'X-Webhook-Token': token, 'Idempotency-Key': 'first' }, body: { name: 'Ada' } })
    assert.equal((await ask(t, 'POST', '/public/v1/custom/hook', { headers: { 'X-Webhook-Token': token, 'Idempotency-Key': 'second' }, body: {} })).status, 422)
  })
  await step('the deliveries are events: processed, come again, failed', async () => {
    await until('three events', async () => {
      await page.goto(`${t.admin}/build/events?endpoint=hook`)
      await page.getByRole('grid', { name: 'Events' }).getByText('processed').first().waitFor()
      return (await page.getByText('1 ×').count()) > 0 && (await page.getByText(/EXECUTION_ERROR/).count()) > 0
    })
  })
  await step('the failed one shows what was delivered, and runs again once it can', async () => {
    await page.getByRole('row').filter({ hasText: 'EXECUTION_ERROR' }).click()
    const drawer = page.getByRole('complementary', { name: /^Event / })
    await drawer.getByText('What was delivered').waitFor()
    await cli(['apply', '-f', '-'], `tenant: ${t.name}\nlogic_components:\n  - {name: greet, source: "export default ({name}) => ({hello: name?.length ?? 0})"}\n`)
    // The server takes up the mended component within a second. A run that has begun meanwhile takes the button away.
    await until('the retry', async () => {
      const again = drawer.getByRole('button', { name: 'Run it again' })
      if ((await again.count()) === 0) return true
      await again.click({ timeout: 3_000 }).catch((e) => { if (e.name !== 'TimeoutError') throw e })
      return false
    })
    await drawer.getByText('processed').first().waitFor()
  })
})
