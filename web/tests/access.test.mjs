import assert from 'node:assert/strict'
import { ask, cli, job, mail, open, picture, signIn, step, tenant, until, waitForText } from './lib/stage.mjs'

export default job('roles, permission sets, sharing rules and External Identity from a fresh tenant', async () => {
  const t = await tenant(`public_api: {enabled: true}
entities:
  - {name: ticket, fields: [{name: title, type: text, required: true}, {name: note, type: text}]}
users:
  - {email: olivia@demo.example, name: Olivia Hart, owner: true}
  - {email: sam@demo.example, name: Sam Okafor}
`)
  const page = await open()
  const exported = () => cli(['export', '--tenant', t.name])
  await step('a role, and one under it', async () => {
    await signIn(page, t, t.email('olivia'), '/settings/roles')
    await page.getByRole('button', { name: 'Add role' }).first().click()
    await page.getByLabel('Name').fill('manager')
    await page.getByRole('complementary', { name: 'Add role' }).getByRole('button', { name: 'Add role' }).click()
    await page.getByRole('list', { name: 'Roles' }).getByRole('button', { name: 'manager' }).click()
    await page.getByRole('button', { name: 'Add a role under it' }).click()
    await page.getByLabel('Name').fill('seller')
    await page.getByRole('complementary', { name: 'Add role' }).getByRole('button', { name: 'Add role' }).click()
    await page.getByRole('list', { name: 'Roles' }).getByRole('button', { name: 'seller' }).waitFor()
    await until('the roles', async () => /name: seller, parent: manager/.test(await exported()))
  })
  await step('a permission set: rights by arches, a field is hidden', async () => {
    await page.goto(`${t.admin}/settings/permission-sets`)
    await page.getByRole('button', { name: 'Add permission set' }).first().click()
    await page.getByLabel('Name').fill('portal')
    await page.getByRole('button', { name: 'Add and choose rights' }).click()
    for (const verb of ['create', 'read', 'update']) await page.getByRole('checkbox', { name: `${verb} ticket`, exact: true }).click()
    await page.getByRole('button', { name: 'ticket', exact: true }).click()
    await page.getByRole('checkbox', { name: 'read ticket.note' }).click()
    await waitForText(page, 'hidden: neither read nor edit')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await until('the set', async () => /note: \{read: false/.test(await exported()))
    await page.getByRole('region', { name: 'Unsaved changes' }).waitFor({ state: 'detached' })
    await picture(page, 'permission-set')
  })
  await step('a user gets role and set', async () => {
    await page.goto(`${t.admin}/users?row=${encodeURIComponent(t.email('sam'))}`)
    const user = page.getByRole('complementary', { name: 'User Sam Okafor' })
    await user.getByLabel('Role', { exact: true }).click()
    await page.getByRole('option', { name: 'seller' }).click()
    await user.getByLabel('Permission sets', { exact: true }).click()
    await page.getByRole('option', { name: 'portal' }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Save Sam Okafor' }).click()
    await until('the user', async () => new RegExp(`${t.email('sam')}, name: Sam Okafor, role: seller, permission_sets: \\[portal\\]`).test(await exported()))
  })
  await step('a sharing rule says what it opens', async () => {
    await page.goto(`${t.admin}/settings/sharing-rules`)
    await page.getByRole('button', { name: 'Add sharing rule' }).first().click()
    const drawer = page.getByRole('complementary', { name: 'Add sharing rule' })
    await drawer.getByLabel('Records of', { exact: true }).click()
    await page.getByRole('option', { name: 'ticket' }).click()
    await drawer.getByLabel('Owned by users with role', { exact: true }).click()
    await page.getByRole('option', { name: 'seller' }).click()
    await drawer.getByLabel('Role', { exact: true }).click()
    await page.getByRole('option', { name: 'manager' }).click()
    await drawer.getByText(/record.* to .* user/).waitFor()
    await drawer.getByRole('button', { name: 'Add rule' }).click()
    await until('the rule', async () => /owned_by_role: seller, share_with_role: manager, access: read/.test(await exported()))
  })
  await step('External Identity is switched on with the set', async () => {
    await page.goto(`${t.admin}/settings/external-users?view=settings`)
    await page.getByRole('switch', { name: 'External Identity is on' }).check()
    await page.getByLabel('Default permission set', { exact: true }).click()
    await page.getByRole('option', { name: 'portal' }).click()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await until('External Identity', async () => (await ask(t, 'POST', '/public/v1/auth/login', { body: { email: 'nobody@x.example', password: 'nobody at all' } })).status === 401)
  })
  const eva = `eva@${t.name}.example`
  const login = () => ask(t, 'POST', '/public/v1/auth/login', { body: { email: eva, password: 'a bell, a basket' } })
  await step('somebody registers, verifies and signs in', async () => {
    const made = await ask(t, 'POST', '/public/v1/auth/register', { body: { email: eva, password: 'a bell, a basket', name: 'Eva Brandt' } })
    assert.equal(made.status, 201)
    const token = /verify\?token=([^\s"<]+)/.exec((await mail(eva)).text)[1]
    assert.equal((await ask(t, 'POST', '/public/v1/auth/verify', { body: { token } })).status, 200)
    assert.equal((await login()).status, 200)
  })
  await step('an admin sees them, and deactivates them', async () => {
    await page.goto(`${t.admin}/settings/external-users`)
    await page.getByText('Eva Brandt').first().click()
    await page.getByRole('complementary', { name: 'User Eva Brandt' }).getByRole('button', { name: 'Deactivate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deactivate' }).click()
    const refused = await until('the deactivation', async () => { const r = await login(); return r.status === 403 && r })
    assert.equal(refused.body.error.details.reason, 'deactivated')
  })
})
