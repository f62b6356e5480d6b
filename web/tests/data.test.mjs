import assert from 'node:assert/strict'
import { ask, cli, demoTenant, job, look, open, picture, signIn, step, tenant, waitForText } from './lib/stage.mjs'

const drawer = (page) => page.locator('aside.drawer')

export default [
  job('records are browsed, filtered, created, edited and deleted', async () => {
    const t = await demoTenant()
    const page = await open()
    await signIn(page, t, t.email('olivia'), '/data')
    await step('the first entity type opens, and another by its name in the rail', async () => {
      await page.getByRole('heading', { name: /^account/ }).waitFor()
      await page.getByRole('link', { name: 'contact' }).click()
      await page.getByText('No contact yet').waitFor()
    })
    await step('a new record is refused without its required fields, at the fields', async () => {
      await page.getByRole('button', { name: 'New contact' }).first().click()
      await drawer(page).getByRole('button', { name: 'Create contact' }).click()
      await drawer(page).locator('.help.bad', { hasText: 'required' }).first().waitFor()
    })
    await step('with them it is created, with a value for each kind of field', async () => {
      await drawer(page).getByLabel('first_name').fill('Jonas')
      await drawer(page).getByLabel('last_name').fill('Keller')
      await drawer(page).getByLabel('last_contacted').fill('2026-01-31T12:00')
      await drawer(page).getByLabel('newsletter').click()
      await page.getByRole('option', { name: 'yes' }).click()
      await drawer(page).getByRole('button', { name: 'Create contact' }).click()
      await drawer(page).getByRole('heading', { name: 'Jonas Keller' }).waitFor()
      await page.getByRole('grid').getByText('Keller').waitFor()
    })
    await step('a field is edited, and saved once', async () => {
      await drawer(page).getByRole('button', { name: 'Edit fields' }).click()
      await drawer(page).getByLabel('phone').fill('+49 30 1')
      await drawer(page).getByRole('button', { name: 'Save 1 change' }).click()
      await page.getByRole('grid').getByText('+49 30 1').waitFor()
    })
    await step('a filter is in the address, and outlives a reload', async () => {
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Filter', exact: true }).click()
      await page.getByRole('menuitem', { name: 'last_name' }).click()
      await page.getByRole('textbox', { name: 'last_name' }).fill('Nobody')
      await page.keyboard.press('Enter')
      await page.getByText('No record matches').waitFor()
      await page.reload()
      await page.getByText('No record matches').waitFor()
      assert.equal(new URL(page.url()).searchParams.get('filter[last_name]'), 'Nobody')
      await page.getByRole('button', { name: 'Remove the filter last_name' }).click()
      await page.getByRole('grid').getByText('Keller').waitFor()
    })
    await step('a record is deleted after it was asked', async () => {
      await page.getByRole('grid').getByText('Keller').click()
      await drawer(page).getByRole('button', { name: 'More' }).click()
      await page.getByRole('menuitem', { name: /Delete contact/ }).click()
      await page.getByRole('button', { name: 'Delete contact' }).click()
      await page.getByText('No contact yet').waitFor()
    })
  }),

  job('why a peer cannot see a record, and what a share changes', async () => {
    const t = await demoTenant()
    const page = await open()
    await signIn(page, t, t.email('olivia'), '/data/contact?row=new')
    await step('a record is there, owned by Sam', async () => {
      await drawer(page).getByLabel('first_name').fill('Jonas')
      await drawer(page).getByLabel('last_name').fill('Keller')
      await drawer(page).getByLabel('owner_id').fill('Sam')
      await page.getByRole('option', { name: /Sam Okafor/ }).click()
      await drawer(page).getByRole('button', { name: 'Create contact' }).click()
      await drawer(page).getByRole('heading', { name: 'Jonas Keller' }).waitFor()
    })
    await step('Rosa, a peer, cannot read it: the answer says why, and what would open it', async () => {
      await drawer(page).getByRole('tab', { name: 'Who sees it' }).click()
      await drawer(page).getByLabel('Can', { exact: true }).fill('Rosa')
      await page.getByRole('option', { name: /Rosa/ }).click()
      await drawer(page).locator('.verdict.no', { hasText: 'can’t read this contact' }).waitFor()
      await waitForText(page, 'Sam Okafor owns it')
      await waitForText(page, 'peers see nothing of one another')
      await waitForText(page, '404 NOT_FOUND')
      assert.equal(new URL(page.url()).searchParams.get('tab'), 'who')
    })
    await step('a share from there changes the answer, and who sees it', async () => {
      await drawer(page).getByRole('button', { name: 'Share (read)' }).click()
      await drawer(page).locator('.verdict.yes', { hasText: 'can read this contact' }).waitFor()
      await drawer(page).locator('table.seers').getByText('Rosa').first().waitFor()
    })
    await step('Rosa finds it in her list now, and may not change it', async () => {
      const hers = look(await open())
      await signIn(hers, t, t.email('rosa'), '/data/contact')
      await hers.getByRole('grid').getByText('Keller').click()
      await drawer(hers).getByRole('heading', { name: 'Jonas Keller' }).waitFor()
      assert.equal(await drawer(hers).getByRole('button', { name: 'Edit fields' }).count(), 0)
      assert.equal(await drawer(hers).getByRole('button', { name: 'More' }).count(), 0)
    })
    await step('the share is taken back, and the record is gone for her', async () => {
      look(page)
      await drawer(page).getByRole('button', { name: /Take back the share with Rosa/ }).click()
      await drawer(page).locator('.verdict.no').waitFor()
    })
  }),

  job('two people edit one record: the second sees both sides', async () => {
    const t = await demoTenant()
    const page = await open()
    await signIn(page, t, t.email('olivia'), '/data/contact?row=new')
    await drawer(page).getByLabel('first_name').fill('Jonas')
    await drawer(page).getByLabel('last_name').fill('Keller')
    await drawer(page).getByRole('button', { name: 'Create contact' }).click()
    await drawer(page).getByRole('heading', { name: 'Jonas Keller' }).waitFor()
    const other = await open()
    await signIn(other, t, t.email('olivia'), new URL(page.url()).pathname.replace('/admin', '') + new URL(page.url()).search)
    const edit = async (at, title) => {
      await drawer(at).getByRole('button', { name: 'Edit fields' }).click()
      await drawer(at).getByLabel('title').fill(title)
    }
    await step('both begin; the first saves', async () => {
      await edit(page, 'Buyer')
      await edit(other, 'Head of maintenance')
      await drawer(page).getByRole('button', { name: 'Save 1 change' }).click()
      await drawer(page).getByText('Buyer').waitFor()
    })
    await step('the second is shown both, and goes on over the other’s version', async () => {
      look(other)
      await drawer(other).getByRole('button', { name: 'Save 1 change' }).click()
      const conflict = drawer(other).locator('.conflict')
      await conflict.waitFor()
      const sides = await conflict.innerText()
      assert.ok(sides.includes('Buyer') && sides.includes('Head of maintenance'), sides)
      await drawer(other).getByRole('button', { name: 'Go on over their version' }).click()
      await drawer(other).getByRole('button', { name: 'Save 1 change' }).click()
      await drawer(other).getByRole('button', { name: 'Edit fields' }).waitFor()
      await drawer(other).getByText('Head of maintenance').waitFor()
    })
  }),

  job('a list is asked for with operators, and in an order', async () => {
    const t = await demoTenant()
    const key = await keyOf(t)
    await create(t, key, 'account', accounts)
    const page = await open()
    const param = (name) => new URL(page.url()).searchParams.get(name)
    const chip = (name) => page.getByRole('search').getByRole('button', { name, exact: true })
    await signIn(page, t, t.email('olivia'), '/data/account')
    await step('what is not indexed is offered beside a filter that is', async () => {
      await page.getByText('6 records').waitFor()
      await addFilter(page)
      await page.getByText('Not indexed: only beside a filter').waitFor()
      assert.equal(await page.getByRole('menuitem', { name: 'employees' }).isDisabled(), true)
      await page.keyboard.press('Escape')
      await page.getByRole('menu').waitFor({ state: 'detached' })
      assert.equal(await focused(page), 'Filter')
      await addFilter(page, 'tier')
      await page.getByLabel('How tier is compared').waitFor()
      await page.keyboard.press('Escape')
      await page.getByLabel('How tier is compared').waitFor({ state: 'detached' })
      assert.equal(await focused(page), 'Filter')
    })
    await step('a choice of several, by the keyboard alone', async () => {
      await page.getByRole('button', { name: 'Filter', exact: true }).press('Enter')
      await page.getByRole('menuitem', { name: 'tier' }).press('Enter')
      await page.getByLabel('How tier is compared').selectOption('is one of')
      for (const tier of ['gold', 'silver']) {
        await page.getByRole('textbox', { name: 'tier' }).fill(tier)
        await page.keyboard.press('Enter')
      }
      await page.getByRole('textbox', { name: 'tier' }).fill('bronze')
      assert.deepEqual(await page.locator('.condition li').allInnerTexts(), ['gold', 'silver', 'bronze'])
      await page.getByRole('textbox', { name: 'tier' }).fill('')
      await page.keyboard.press('Enter')
      await shows(page, ['Fjord', 'Delta', 'Brook', 'Alder'])
      assert.equal(param('filter[tier][in]'), 'gold,silver')
      await page.getByText('4 that match').waitFor()
      assert.equal(await focused(page), 'tier is one of gold, silver')
    })
    await step('a number, and one that is none', async () => {
      await addFilter(page, 'employees')
      await page.getByLabel('How employees is compared').selectOption('is at least')
      await page.getByRole('textbox', { name: 'employees' }).fill('many')
      await page.keyboard.press('Enter')
      await page.getByText('expected a number').waitFor()
      await page.getByRole('textbox', { name: 'employees' }).fill('50')
      await picture(page, 'filter-number')
      await page.keyboard.press('Enter')
      await shows(page, ['Fjord', 'Delta', 'Brook'])
      await page.getByText('3 that match').waitFor()
    })
    await step('a chip is changed; Escape leaves it as it was, with the focus on it', async () => {
      await chip('employees is at least 50').click()
      await page.keyboard.press('Escape')
      assert.equal(await focused(page), 'employees is at least 50')
      await chip('employees is at least 50').click()
      await page.getByLabel('How employees is compared').selectOption('is not set')
      await page.getByRole('button', { name: 'Apply' }).click()
      await shows(page, ['Alder'])
      assert.deepEqual([param('filter[employees][gte]'), param('filter[employees][is_null]')], [null, 'true'])
      assert.equal(await focused(page), 'employees is not set')
    })
    await step('without its indexed neighbour it is refused, at the filter, in the words of the API', async () => {
      await page.getByRole('button', { name: 'Remove the filter tier is one of' }).click()
      await page.getByText('The list cannot be filtered like this').waitFor()
      await page.locator('.filterfaults p', { hasText: 'employees: is neither indexed nor unique: filter by a field that is as well (name' }).waitFor()
      await picture(page, 'filter-refused')
      assert.equal(await focused(page), 'Filter')
      await addFilter(page, 'created_at')
      await page.getByRole('textbox', { name: 'created_at' }).fill('2020-01-31T12:00')
      await page.getByRole('button', { name: 'Apply' }).click()
      await shows(page, ['Alder'])
      assert.equal(param('filter[created_at][gte]'), '2020-01-31T12:00:00Z')
    })
    await step('a link has it all: the old form, operators, the order, and what the page does not offer', async () => {
      await page.goto(`${t.admin}/data/account?filter[industry]=retail&filter[active]=true&filter[customer_since][lt]=2025-01-01&filter[or][0][tier]=gold&sort=-employees`)
      await shows(page, ['Delta', 'Brook'])
      for (const name of ['industry is retail', 'active is yes', 'customer_since is before 2025-01-01']) await chip(name).waitFor()
      await page.getByRole('button', { name: 'Remove the filter filter[or][0][tier]' }).click()
      await shows(page, ['Delta', 'Brook', 'Cedar'])
      await page.getByText('sorted by employees descending').waitFor()
    })
    await step('the heads sort: ascending, descending, newest first', async () => {
      await page.goto(`${t.admin}/data/account`)
      const head = page.getByRole('columnheader', { name: 'city' })
      const press = () => head.getByRole('button').press('Enter')
      const is = async (sort, order) => { assert.equal(await head.getAttribute('aria-sort'), order); assert.equal(param('sort'), sort) }
      await shows(page, ['Fjord', 'Elm', 'Delta', 'Cedar', 'Brook', 'Alder'])
      assert.equal(await page.getByRole('columnheader', { name: 'created_at' }).getAttribute('aria-sort'), 'descending')
      await is(null, 'none')
      await press()
      await shows(page, ['Alder', 'Fjord', 'Brook', 'Cedar', 'Delta', 'Elm'])
      await is('city', 'ascending')
      await page.reload()
      await shows(page, ['Alder', 'Fjord', 'Brook', 'Cedar', 'Delta', 'Elm'])
      await press()
      await shows(page, ['Elm', 'Delta', 'Cedar', 'Brook', 'Fjord', 'Alder'])
      await is('-city', 'descending')
      await press()
      await shows(page, ['Fjord', 'Elm', 'Delta', 'Cedar', 'Brook', 'Alder'])
      await is(null, 'none')
    })
    await step('an order that there is not is refused, with the way back', async () => {
      await page.goto(`${t.admin}/data/account?sort=nobody`)
      await page.getByText('unknown field "nobody"').waitFor()
      await page.getByRole('button', { name: 'Newest first' }).click()
      await shows(page, ['Fjord', 'Elm', 'Delta', 'Cedar', 'Brook', 'Alder'])
    })
    await step('records by whom they refer to', async () => {
      const account = (await ask(t, 'GET', '/public/v1/data/account?filter[name]=Elm', { token: key })).body.data[0].id
      await create(t, key, 'contact', [{ first_name: 'Jonas', last_name: 'Keller', account }, { first_name: 'Ida', last_name: 'Berg', interests: ['pumps'] }])
      await page.goto(`${t.admin}/data/contact?filter[created_at][gte]=2020-01-01T00:00:00Z`)
      await addFilter(page, 'account')
      await page.getByRole('textbox', { name: 'account' }).fill('El')
      await page.getByRole('button', { name: 'Elm' }).click()
      await chip('account is Elm').waitFor()
      await shows(page, ['Jonas'])
      await page.getByRole('button', { name: 'Remove the filter account is' }).click()
      await addFilter(page, 'interests')
      await page.getByRole('button', { name: 'pumps' }).click()
      await chip('interests has pumps').waitFor()
      await shows(page, ['Ida'])
    })
    await step('on a telephone there is a menu for the order, and the filters fit', async () => {
      const small = look(await open({ colorScheme: 'dark' }))
      await signIn(small, t, t.email('olivia'), '/data/account?filter%5Btier%5D%5Bin%5D=gold,silver&filter%5Bemployees%5D%5Bgte%5D=1')
      await small.setViewportSize({ width: 360, height: 740 })
      await small.getByRole('button', { name: 'Order', exact: true }).click()
      await small.getByRole('menuitem', { name: 'city' }).click()
      await small.getByRole('menuitem', { name: 'city ascending' }).waitFor()
      await picture(small, 'order-small-dark')
      await small.keyboard.press('Escape')
      await shows(small, ['Fjord', 'Brook', 'Delta'])
      await small.getByRole('search').getByRole('button', { name: 'tier is one of gold, silver' }).click()
      await small.getByLabel('How tier is compared').waitFor()
      await picture(small, 'filter-small-dark')
      assert.ok(await small.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page is wider than the telephone')
    })
  }),

  job('what takes too much is said with its help, and pages of a sorted list go on', async () => {
    const t = await tenant(`public_api: {enabled: true}
entities:
  - name: note
    fields: [{name: title, type: text, required: true, searchable: true}, {name: place, type: number, indexed: true}, {name: kind, type: select, options: [memo], indexed: true}, {name: body, type: text}]
users:
  - {email: olivia@demo.example, name: Olivia Hart, owner: true}
`)
    const key = await keyOf(t)
    // So large that a page looks at 32 MiB before all are looked at (contract P10).
    await create(t, key, 'note', Array.from({ length: 40 }, (_, i) => ({ title: `Note ${i}`, kind: 'memo', place: i % 20, body: 'n'.repeat(900_000) })))
    const page = await open()
    const titles = () => page.locator('tr[data-key] td:first-child').allInnerTexts()
    await signIn(page, t, t.email('olivia'), '/data/note?sort=place')
    await step('a sorted list pages on by its cursors, and back', async () => {
      const all = []
      for (;;) {
        await page.locator('tr[data-key]').first().waitFor()
        const here = await titles()
        all.push(...here)
        const next = page.getByRole('button', { name: 'Next' })
        if (await next.count() === 0 || await next.isDisabled()) break
        await next.click()
        await page.locator('tr[data-key] td:first-child', { hasText: new RegExp(`^${here[0]}$`) }).waitFor({ state: 'detached' })
      }
      const wanted = Array.from({ length: 40 }, (_, i) => ({ i, place: i % 20 })).sort((a, b) => a.place - b.place || a.i - b.i).map(({ i }) => `Note ${i}`)
      assert.deepEqual(all, wanted)
      assert.equal(new URL(page.url()).searchParams.get('sort'), 'place')
      await page.getByRole('button', { name: 'Previous' }).click()
      await page.locator('tr[data-key] td:first-child', { hasText: new RegExp(`^${all.at(-1)}$`) }).waitFor({ state: 'detached' })
    })
    await step('a search is in the address and finds beginnings while it is typed', async () => {
      await page.goto(`${t.admin}/data/note`)
      await page.getByLabel('Search words').fill('NOTE 39')
      await page.waitForURL(/search=NOTE(\+|%20)39/)
      await page.locator('tr[data-key]').nth(1).waitFor({ state: 'detached' })
      assert.deepEqual(await titles(), ['Note 39'])
      await page.reload()
      await page.locator('tr[data-key]').first().waitFor()
      assert.deepEqual(await titles(), ['Note 39'])
      await page.getByLabel('Search words').fill('nobody')
      await page.getByText('No record matches').waitFor()
      await page.getByLabel('Search words').fill('-')
      await page.locator('.filterfaults p', { hasText: 'Search: expected 1 to 8 words' }).waitFor()
      await page.getByText('The list cannot be searched like this').waitFor()
      await page.getByLabel('Search words').fill('')
      await page.waitForURL((url) => !url.searchParams.has('search'))
      await page.locator('tr[data-key]').nth(1).waitFor()
    })
    await step('a filter for which too many records are looked at', async () => {
      await page.goto(`${t.admin}/data/note?filter[kind]=memo&filter[title]=Nobody`)
      await page.getByText('Too many records to look through').waitFor()
      await page.getByText('add a condition that an index answers').waitFor()
      await page.locator('.filterfaults p', { hasText: 'title: an index on it would answer this' }).waitFor()
      await picture(page, 'too-broad')
    })
  }),
]

/** What the lists of accounts are about, in the order of their creation. */
const accounts = [
  { name: 'Alder', tier: 'gold', city: 'Aarhus' },
  { name: 'Brook', tier: 'gold', city: 'Cork', employees: 50, industry: 'retail', active: true, customer_since: '2020-05-01' },
  { name: 'Cedar', tier: 'bronze', city: 'Delft', employees: 7, industry: 'retail', active: true, customer_since: '2021-05-01' },
  { name: 'Delta', tier: 'gold', city: 'Essen', employees: 900, industry: 'retail', active: true, customer_since: '2024-12-31' },
  { name: 'Elm', tier: 'bronze', employees: 12, industry: 'retail', active: false },
  { name: 'Fjord', tier: 'silver', city: 'Bergen', employees: 51, industry: 'retail', active: true, customer_since: '2025-01-01' },
]

const keyOf = async (t) => (await cli(['key', 'create', '--tenant', t.name, '--user', t.email('olivia'), '--name', 'fill', '--rate-limit', '1000000'])).trim()

/** create makes records of an entity type, one after another. */
async function create(t, token, entity, rows) {
  for (const body of rows) {
    const answer = await ask(t, 'POST', `/public/v1/data/${entity}`, { token, body })
    assert.equal(answer.status, 201, answer.text)
  }
}

/** addFilter opens the menu of fields and, with a name, begins a filter on that field. */
async function addFilter(page, field) {
  await page.getByRole('button', { name: 'Filter', exact: true }).click()
  if (field) await page.getByRole('menuitem', { name: field, exact: true }).click()
}

/** shows waits until the list has just these records, by their first column. */
async function shows(page, names) {
  await page.waitForFunction((want) => JSON.stringify([...document.querySelectorAll('tr[data-key] td:first-child')].map((c) => c.innerText.trim())) === want, JSON.stringify(names))
}

/** focused gives the words of the element that has the focus. */
const focused = (page) => page.evaluate(() => document.activeElement?.textContent)
