/** made creates a contact, and goes to a tab of its drawer. */
const made = (tab) => async (page) => {
  const id = await page.evaluate(async () => {
    const answer = await fetch('/admin/v1/data/contact', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ first_name: 'Jonas', last_name: 'Keller' }) })
    return (await answer.json()).data.id
  })
  await page.goto(new URL(`?row=${id}&tab=${tab}`, page.url()).href)
  await page.getByRole('heading', { name: 'Jonas Keller' }).waitFor()
}

/** Data with its drawers, and an open operation of the API reference. */
export default () => [
  { name: 'record fields', path: '/data/contact', prepare: made('fields') },
  { name: 'record who sees it', path: '/data/contact', prepare: made('who') },
  { name: 'record use it', path: '/data/contact', prepare: made('use') },
  { name: 'new record', path: '/data/contact?row=new' },
  { name: 'reference of an operation', path: '/api-reference?op=contact.create' },
]
