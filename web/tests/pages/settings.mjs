const firstRow = (page) => page.locator('[role=grid] tbody tr[role=row]').first().click()
const rowWith = (text) => (page) => page.getByRole('row').filter({ hasText: text }).first().click()

/** Settings: keys, endpoints, the audit log, access, mails, history, configuration, and their drawers and dialogs. */
export default (t) => [
  { name: 'key', path: '/settings/api-keys', prepare: rowWith('Web shop') },
  { name: 'key requests', path: '/settings/api-keys?tab=requests', prepare: rowWith('Web shop') },
  { name: 'key use it', path: '/settings/api-keys?tab=use', prepare: rowWith('Web shop') },
  { name: 'key delete', path: '/settings/api-keys', prepare: async (page) => { await rowWith('Web shop')(page); await page.getByRole('button', { name: 'Delete', exact: true }).click(); await page.getByRole('dialog').waitFor() } },
  { name: 'new key', path: '/settings/api-keys?new=1' },
  { name: 'endpoint', path: '/settings/endpoints/quote' },
  { name: 'endpoint webhook', path: '/settings/endpoints/web-lead' },
  { name: 'endpoint events', path: '/settings/endpoints/web-lead?tab=events' },
  { name: 'endpoint errors', path: '/settings/endpoints/quote?tab=errors' },
  { name: 'endpoint runs', path: '/settings/endpoints/quote?tab=runs' },
  { name: 'endpoint edit', path: '/settings/endpoints/web-lead?edit=1' },
  { name: 'endpoint new', path: '/settings/endpoints/orders?new=1' },
  { name: 'gone endpoint', path: '/settings/endpoints/nothing-here' },
  { name: 'audit entry', path: '/settings/audit?status=errors', prepare: firstRow },
  { name: 'audit nothing', path: '/settings/audit?q=nothing-has-this' },
  { name: 'external settings', path: '/settings/external-users?view=settings' },
  { name: 'external user', path: '/settings/external-users', prepare: firstRow },
  { name: 'new external user', path: '/settings/external-users?new=1' },
  { name: 'user', path: `/users?row=${encodeURIComponent(t.email('sam'))}` },
  { name: 'new user', path: '/users?new=1' },
  { name: 'role', path: '/settings/roles?row=sales_rep' },
  { name: 'new role', path: '/settings/roles?new=1' },
  { name: 'permission set', path: '/settings/permission-sets/sales?open=opportunity' },
  { name: 'permission set edited', path: '/settings/permission-sets/support', prepare: async (page) => { await page.getByRole('checkbox', { name: 'delete contact', exact: true }).click() } },
  { name: 'new permission set', path: '/settings/permission-sets?new=1' },
  { name: 'gone permission set', path: '/settings/permission-sets/nothing_here' },
  { name: 'sharing rule', path: '/settings/sharing-rules', prepare: firstRow },
  { name: 'new sharing rule', path: '/settings/sharing-rules?new=1' },
  { name: 'template', path: '/settings/templates/external-user-email-verification' },
  { name: 'template edited', path: '/settings/templates/external-user-welcome', prepare: async (page) => { await page.getByLabel('Subject').fill('Welcome to {{tenant_name}}, {{name}}') } },
  { name: 'change', path: '/settings/history', prepare: firstRow },
  { name: 'apply', path: '/settings/configuration/apply' },
  { name: 'apply planned', path: '/settings/configuration/apply', prepare: async (page) => {
    await page.getByRole('textbox').first().click()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(`tenant: ${t.name}\nentities:\n  - name: invoice\n    sharing: private\n    fields:\n      - {name: number, type: text, required: true, unique: true}\n      - {name: account, type: reference, entity: account}\n      - {name: total, type: number}\nroles:\n  - {name: accountant, parent: ceo}\n`)
    await page.getByRole('button', { name: /plan|check|change/i }).first().click()
    await page.waitForTimeout(1500)
  } },
]
