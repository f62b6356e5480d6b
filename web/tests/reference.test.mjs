import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { cli, demoTenant, job, open, signIn, step } from './lib/stage.mjs'

const run = promisify(execFile)

export default job('a sample request of the API reference works as pasted', async () => {
  const t = await demoTenant()
  const page = await open()
  const token = (await cli(['key', 'create', '--tenant', t.name, '--user', t.email('sam'), '--name', 'reference'])).trim()
  await signIn(page, t, t.email('olivia'), '/api-reference')
  const sample = async (id) => {
    await page.goto(`${t.admin}/api-reference?op=${encodeURIComponent(id)}`)
    await page.locator('.opdetail').waitFor()
    return page.locator('.opdetail pre').first().innerText()
  }
  // What curl and Node do not know of: *.localhost is this machine.
  const shell = async (text) => (await run('bash', ['-c', text.replace(/^curl /, `curl --resolve ${t.host}:${new URL(t.origin).port}:127.0.0.1 `)], { env: { ...process.env, GATEHOUSE_TOKEN: token } })).stdout
  let id = ''
  await step('create, in curl', async () => {
    const answer = JSON.parse(await shell(await sample('contact.create')))
    assert.ok(answer.data?.id, JSON.stringify(answer))
    id = answer.data.id
  })
  await step('list, in curl', async () => {
    const answer = JSON.parse(await shell(await sample('contact.list')))
    assert.equal(answer.data[0]?.id, id)
  })
  await step('read, with the id put into the sample', async () => {
    await sample('contact.get')
    await page.getByPlaceholder('put an id into the samples').fill(id)
    await page.locator('.opdetail pre', { hasText: id }).waitFor()
    const answer = JSON.parse(await shell(await page.locator('.opdetail pre').first().innerText()))
    assert.equal(answer.data?.id, id)
  })
  await step('list, in JavaScript', async () => {
    await sample('contact.list')
    await page.getByRole('button', { name: 'JavaScript' }).click()
    await page.locator('.opdetail pre', { hasText: 'process.env.GATEHOUSE_TOKEN' }).waitFor()
    const text = await page.locator('.opdetail pre').first().innerText()
    const data = await page.evaluate(`(async () => { const process = { env: { GATEHOUSE_TOKEN: ${JSON.stringify(token)} } }
${text}
return answer.data })()`)
    assert.equal(data[0]?.id, id)
  })
  await step('as an external user, what is closed to her is not there', async () => {
    await page.goto(`${t.admin}/api-reference`)
    await page.getByText('/data/contact/{id}/shares').first().waitFor()
    await page.getByLabel('As a user', { exact: true }).fill('Eva')
    await page.getByRole('option', { name: /Eva/ }).click()
    await page.getByText('What eva@').first().waitFor()
    assert.equal(await page.getByText('/custom/web-lead').count(), 0)
  })
  await step('the OpenAPI document is downloaded', async () => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'OpenAPI document' }).click()])
    const doc = JSON.parse(await readFile(await file.path(), 'utf8'))
    assert.equal(doc.openapi, '3.1.0')
    assert.ok(Object.keys(doc.paths).length > 5)
  })
})
