import assert from 'node:assert/strict'
import { cli, job, look, open, picture, signIn, step, tenant, until, waitForText } from './lib/stage.mjs'

export default job('two admins change one object at once: nobody’s change is lost', async () => {
  const t = await tenant(`entities:
  - {name: contact, fields: [{name: email, type: text}]}
permission_sets:
  - {name: admins, system: [manage_entities], all_entity_access: true}
users:
  - {email: olivia@demo.example, name: Olivia Hart, owner: true}
  - {email: enno@demo.example, name: Enno, permission_sets: [admins]}
`)
  const exported = () => cli(['export', '--tenant', t.name])
  const olivia = await open()
  const enno = await open()
  const add = async (page, name) => {
    look(page)
    await page.getByRole('button', { name: 'Add field' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name)
  }
  await step('both open the same entity', async () => {
    await signIn(olivia, t, t.email('olivia'), '/build/entities/contact')
    await signIn(enno, t, t.email('enno'), '/build/entities/contact')
    await add(olivia, 'phone')
    await add(enno, 'city')
  })
  await step('the first saves', async () => {
    look(olivia)
    await olivia.getByRole('button', { name: 'Save changes' }).click()
    await until('phone', async () => /name: phone/.test(await exported()))
  })
  await step('the second is shown both sides, and loses nothing', async () => {
    look(enno)
    await enno.getByRole('button', { name: 'Save changes' }).click()
    await enno.getByRole('alert', { name: 'Somebody changed it meanwhile' }).waitFor()
    await waitForText(enno, 'phone')
    await picture(enno, 'conflict')
    assert.match(await exported(), /name: phone/)
    assert.doesNotMatch(await exported(), /name: city/)
    await enno.getByRole('button', { name: 'Go on over their version' }).click()
    await enno.getByRole('row', { name: /phone/ }).waitFor()
    await enno.getByRole('button', { name: 'Save changes' }).click()
    await until('both', async () => { const text = await exported(); return /name: phone/.test(text) && /name: city/.test(text) })
  })
  await step('the history names both', async () => {
    look(olivia)
    await olivia.goto(`${t.admin}/settings/history?kind=entity`)
    await olivia.getByRole('row', { name: /enno@/ }).waitFor()
    await olivia.getByRole('row', { name: /olivia@/ }).first().waitFor()
  })
})
