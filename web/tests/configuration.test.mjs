import assert from 'node:assert/strict'
import { cli, job, open, picture, signIn, step, tenant, until, waitForText } from './lib/stage.mjs'

export default job('a manifest is uploaded, its plan is seen, and it is applied', async () => {
  const t = await tenant()
  const page = await open()
  const exported = () => cli(['export', '--tenant', t.name])
  const upload = async (text, name = 'next.yaml') => { await page.getByLabel('Manifest file').setInputFiles({ name, mimeType: 'application/yaml', buffer: Buffer.from(text) }) }
  await step('the manifest as it stands', async () => {
    await signIn(page, t, t.email('owner'), '/settings/configuration')
    await waitForText(page, `tenant: ${t.name}`)
    await page.getByRole('button', { name: 'Apply a manifest' }).click()
    await page.getByRole('button', { name: 'Choose a file' }).waitFor()
  })
  await step('a mistake is told with its line', async () => {
    await upload(`tenant: ${t.name}\nroles:\n  - {name: sales, parent: nobody}\n`)
    await page.getByRole('button', { name: 'Show what it changes' }).click()
    await waitForText(page, 'there is no role "nobody"')
    await waitForText(page, 'line 3:')
  })
  const next = `tenant: ${t.name}\nentities:\n  - name: contact\n    fields: [{name: email, type: text, indexed: true}]\nroles:\n  - {name: sales}\nusers:\n  - {email: sam@${t.name}.example, name: Sam, role: sales, password: "\${SAM}"}\n`
  await step('the plan says what it would do, and nothing is changed', async () => {
    await upload(next)
    await page.getByLabel('${SAM}').fill('a password of Sam')
    await page.getByRole('button', { name: 'Show what it changes' }).click()
    await page.getByRole('heading', { name: '3 changes, before they are applied' }).waitFor()
    await picture(page, 'plan')
    assert.doesNotMatch(await exported(), /sales/)
  })
  await step('what somebody else changed meanwhile is not overwritten', async () => {
    await cli(['apply', '-f', '-'], `tenant: ${t.name}\nroles: [{name: ceo}, {name: sales, parent: ceo}]\n`)
    await page.getByRole('button', { name: 'Apply 3 changes' }).click()
    await waitForText(page, 'Nothing was changed. See what it would change now')
    assert.match(await exported(), /name: sales, parent: ceo/)
    await page.getByRole('button', { name: 'Show it again' }).click()
    await waitForText(page, 'parent: ceo')
  })
  await step('applied as it was shown', async () => {
    await page.getByRole('button', { name: 'Apply 3 changes' }).click()
    await page.getByRole('heading', { name: 'Configuration' }).waitFor()
    await until('the role', async () => /name: sales\}/.test(await exported()))
    await until('the user', async () => /sam@/.test(await exported()))
  })
})
