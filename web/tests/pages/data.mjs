/** made creates a contact, and goes to a tab of its drawer. */
const made = (tab) => async (page) => {
  const id = await page.evaluate(async () => {
    const answer = await fetch('/admin/v1/data/contact', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ first_name: 'Jonas', last_name: 'Keller' }) })
    return (await answer.json()).data.id
  })
  await page.goto(new URL(`?row=${id}&tab=${tab}`, page.url()).href)
  await page.getByRole('heading', { name: 'Jonas Keller' }).waitFor()
}

const drawer = (page) => page.locator('aside.drawer')

/** Data with its drawers, and an open operation of the API reference. */
export default (t) => [
  { name: 'record fields', path: `/data/contact${t.contact ? `?row=${t.contact}` : ''}`, prepare: t.contact ? undefined : made('fields') },
  { name: 'record edit', path: '/data/opportunity', prepare: async (page) => {
    await page.getByRole('row').nth(1).click()
    await drawer(page).getByRole('button', { name: 'Edit fields' }).click()
    await drawer(page).locator('.jsonfield .cm-content').waitFor()
  } },
  { name: 'record who sees it', path: `/data/contact${t.contact ? `?row=${t.contact}&tab=who` : ''}`, prepare: t.contact ? undefined : made('who') },
  { name: 'record requests', path: `/data/contact${t.contact ? `?row=${t.contact}&tab=requests` : ''}` },
  { name: 'record changes', path: `/data/contact${t.contact ? `?row=${t.contact}&tab=changes` : ''}` },
  { name: 'record use it', path: `/data/contact${t.contact ? `?row=${t.contact}&tab=use` : ''}`, prepare: t.contact ? undefined : made('use') },
  { name: 'record delete', path: `/data/contact${t.contact ? `?row=${t.contact}` : ''}`, prepare: async (page) => {
    await drawer(page).getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: /Delete contact/ }).click()
    await page.getByRole('dialog').waitFor()
  } },
  { name: 'new record', path: '/data/contact?row=new' },
  { name: 'export', path: '/data/contact?row=export' },
  { name: 'import', path: '/data/contact?row=import', prepare: async (page) => {
    await drawer(page).getByLabel('File with records').setInputFiles({ name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from('first_name,last_name\nAda,\n') })
    await drawer(page).getByRole('button', { name: 'Check only' }).click()
    await drawer(page).getByText('last_name: required').waitFor()
  } },
  { name: 'new opportunity', path: '/data/opportunity?row=new' },
  { name: 'filter of records', path: '/data/account?filter%5Btier%5D=gold', prepare: async (page) => { await page.getByRole('button', { name: 'Filter', exact: true }).click(); await page.getByRole('menuitem', { name: 'city' }).waitFor() } },
  { name: 'filter of one field', path: '/data/account?filter%5Btier%5D=gold', prepare: async (page) => {
    await page.getByRole('button', { name: 'Filter', exact: true }).click()
    await page.getByRole('menuitem', { name: 'employees' }).click()
    await page.getByLabel('How employees is compared').selectOption('is one of')
  } },
  { name: 'filter of several options', path: '/data/account?filter%5Btier%5D%5Bin%5D=gold,silver&sort=-city', prepare: async (page) => {
    await page.getByRole('button', { name: 'tier is one of gold, silver', exact: true }).click()
    await page.getByLabel('How tier is compared').waitFor()
  } },
  { name: 'filter that is refused', path: '/data/account?filter%5Bemployees%5D%5Bgte%5D=5&filter%5Bor%5D%5B0%5D%5Bwebsite%5D=x' },
  { name: 'order that is refused', path: '/data/account?sort=nobody' },
  { name: 'no record matches', path: '/data/account?filter%5Bcity%5D=Atlantis' },
  { name: 'record that is gone', path: '/data/contact?row=01a00000-0000-7000-8000-000000000000' },
  { name: 'entity that is gone', path: '/data/invoice' },
  { name: 'reference of an operation', path: '/api-reference?op=contact.create' },
]
