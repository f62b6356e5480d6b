import assert from 'node:assert/strict'
import { ask, cli, job, mail, open, picture, signIn, step, tenant, until, waitForText } from './lib/stage.mjs'

export default job('the API is switched off and on; a mail has a text of its own', async () => {
  const t = await tenant(`public_api: {enabled: true}
users:
  - {email: olivia@demo.example, name: Olivia Hart, owner: true}
`)
  const token = (await cli(['key', 'create', '--tenant', t.name, '--user', t.email('olivia'), '--name', 'app'])).trim()
  const me = () => ask(t, 'GET', '/public/v1/me', { token })
  const page = await open({ expected: /sandboxed and the 'allow-scripts'/ })
  await step('a call is answered', async () => { assert.equal((await me()).status, 200) })
  await step('switching it off says what stops and asks for the name', async () => {
    await signIn(page, t, t.email('olivia'), '/settings/api-config')
    await page.getByRole('switch', { name: 'Public API' }).uncheck()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await waitForText(page, 'Every API key, every access token and every custom endpoint stops at once')
    assert.ok(await page.getByRole('button', { name: 'Switch it off' }).isDisabled())
    await page.getByLabel(`Type ${t.name} to go on`).fill(t.name)
    await picture(page, 'switch-off')
    await page.getByRole('button', { name: 'Switch it off' }).click()
    await waitForText(page, 'Public API off')
  })
  await step('a call gets 503', async () => {
    const refused = await until('the switch', async () => { const r = await me(); return r.status === 503 && r })
    assert.equal(refused.body.error.code, 'API_DISABLED')
  })
  await step('on again', async () => {
    await page.getByRole('switch', { name: 'Public API' }).check()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await until('the API', async () => (await me()).status === 200)
  })
  await step('a template is written beside its preview, tried and saved', async () => {
    await page.goto(`${t.admin}/settings/templates`)
    await page.getByRole('link', { name: 'Welcome' }).click()
    await page.getByLabel('Subject').fill('Hello {{nobody}}')
    await waitForText(page, 'expected one of {{name}}')
    await page.getByLabel('Subject').fill('Hello {{name}}')
    await page.getByLabel('HTML', { exact: true }).and(page.locator('textarea')).fill('<h1>Welcome to {{tenant_name}}</h1><script>parent.document.title = "taken"</script>')
    await page.getByText('Hello Ada Lovelace').waitFor()
    await page.frameLocator('iframe[title="Preview of the mail"]').getByText('Welcome to Brightwater Supplies').waitFor()
    await picture(page, 'template')
    assert.notEqual(await page.title(), 'taken')
    await page.getByRole('button', { name: 'Send me a test mail' }).click()
    const sent = await mail(t.email('olivia'))
    assert.equal(sent.subject, '[Test] Hello Olivia Hart')
    await page.getByRole('button', { name: 'Save template' }).click()
    await until('the template', async () => /Hello \{\{name\}\}/.test(await cli(['export', '--tenant', t.name])))
  })
})
