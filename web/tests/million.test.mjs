import assert from 'node:assert/strict'
import { ask, at, cli, job, open, signIn, step, tenant, until } from './lib/stage.mjs'

// With GATEHOUSE_PROVE=1 a million records, and the times are held to; otherwise a thousand, and the same way through them.
const runs = at.prove ? 1000 : 1
const perRun = 1000

const manifest = `public_api: {enabled: true, log_standard_requests: false}
entities:
  - name: item
    fields: [{name: name, type: text, required: true}, {name: batch, type: number, indexed: true}, {name: stage, type: select, options: [new, won, lost], indexed: true}, {name: due, type: date}]
automations:
  - name: fill
    trigger: http.request
    input_schema: [{name: rows, type: json, required: true}]
    nodes:
      - {id: all, type: each, in: "{{inputs.rows}}", as: row, do: [{id: one, type: record.create, entity: item, fields: {name: "{{row.name}}", batch: "{{row.batch}}", stage: "{{row.stage}}", due: "2026-01-31"}}]}
custom_endpoints:
  - {slug: fill, target: {automation: fill}, log_requests: false}
users:
  - {email: olivia@demo.example, name: Olivia Hart, owner: true}
`

/** drawn clicks an element and gives the milliseconds until the first row is another one, and is painted. */
const drawn = (page, selector, name) => page.evaluate(async ([css, words]) => {
  const first = () => document.querySelector('table[aria-label^="Records of"] tr[data-key]')?.dataset.key
  const before = first()
  const button = [...document.querySelectorAll(css)].find((b) => b.textContent.trim() === words)
  if (!button) throw new Error(`nothing says ${words}`)
  const start = performance.now()
  button.click()
  await new Promise((resolve) => {
    const look = () => { const now = first(); if (now && now !== before) requestAnimationFrame(() => { setTimeout(resolve) }); else requestAnimationFrame(look) }
    look()
  })
  return performance.now() - start
}, [selector, name])

export default job(`a list of ${(runs * perRun).toLocaleString('en')} records is quick`, async () => {
  const t = await tenant(manifest)
  const token = (await cli(['key', 'create', '--tenant', t.name, '--user', t.email('olivia'), '--name', 'fill', '--rate-limit', '1000000'])).trim()
  await step('the records are there', async () => {
    for (let run = 0; run < runs; run++) {
      const rows = Array.from({ length: perRun }, (_, i) => ({ name: `Item ${run * perRun + i}`, batch: run, stage: ['new', 'won', 'lost'][i % 3] }))
      // A run that a busy machine ends has done nothing, and is sent again.
      await until('a run that creates records', async () => {
        const answer = await ask(t, 'POST', '/public/v1/custom/fill', { token, body: { rows } })
        assert.ok([200, 503, 504].includes(answer.status), answer.text)
        return answer.status === 200
      }, 300)
    }
  })
  const page = await open()
  const times = { first: [], pages: [] }
  await signIn(page, t, t.email('olivia'), '/api-reference')
  await step('the first rows', async () => {
    for (let i = 0; i < 3; i++) {
      await page.getByRole('link', { name: 'item' }).waitFor()
      times.first.push(await drawn(page, 'nav a', 'item'))
      await page.getByRole('link', { name: 'API reference' }).click()
      await page.getByRole('heading', { name: 'API reference' }).waitFor()
    }
    await page.getByRole('link', { name: 'item' }).click()
    await page.getByText(`Item ${runs * perRun - 1}`, { exact: true }).waitFor()
  })
  await step('further pages, and only the rows in sight are drawn', async () => {
    for (let i = 1; i < 10; i++) times.pages.push(await drawn(page, 'button', 'Next'))
    await page.getByText('901 to 1,000').waitFor()
    assert.ok(await page.locator('tr[data-key]').count() < 100, 'every row of the page is drawn')
    for (let i = 1; i < 3; i++) times.pages.push(await drawn(page, 'button', 'Previous'))
  })
  await step('a filter', async () => {
    await page.goto(`${t.admin}/data/item?filter[batch]=0&filter[stage]=won`)
    await page.getByText(`Item 1`, { exact: true }).or(page.getByText('Item 997', { exact: true })).first().waitFor()
    times.pages.push(await drawn(page, 'button', 'Next'))
  })
  await step('an order by an indexed field', async () => {
    await page.goto(`${t.admin}/data/item`)
    await page.getByRole('columnheader', { name: 'batch' }).getByRole('button').click()
    await page.getByText('Item 0', { exact: true }).waitFor()
    for (let i = 1; i < 5; i++) times.pages.push(await drawn(page, 'button', 'Next'))
    await page.getByText('401 to 500').waitFor()
  })
  await step('an order that no index has, of few records only', async () => {
    await page.getByRole('columnheader', { name: 'name' }).getByRole('button').click()
    await page.getByText(at.prove ? 'more than 10000 records would be sorted by "name"' : 'Item 100').first().waitFor()
  })
  const words = (list) => list.map((ms) => Math.round(ms)).join(', ')
  console.log(`    first rows: ${words(times.first)} ms; further pages: ${words(times.pages)} ms`)
  if (at.prove) {
    assert.ok(Math.min(...times.first) < 1000, 'the first rows take longer than a second')
    const sorted = times.pages.toSorted((a, b) => a - b)
    assert.ok(sorted[Math.floor(sorted.length / 2)] < 300, 'further pages take longer than 300 ms')
  }
})
