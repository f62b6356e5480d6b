// First rows and further pages of the audit log with 1,000,000 entries. It takes minutes and holds to times, so it runs with GATEHOUSE_PROVE=1 alone.
import assert from 'node:assert/strict'
import { at, demoTenant, job, open, signIn, step } from './lib/stage.mjs'

const count = 1_000_000

/** timed is how long it takes until the page shows other rows than before. */
async function timed(page, work) {
  const before = await page.evaluate(() => document.querySelector('tr[data-key]')?.getAttribute('data-key') ?? null)
  const start = Date.now()
  await work()
  await page.waitForFunction((key) => { const r = document.querySelector('tr[data-key]'); return r !== null && r.getAttribute('data-key') !== key }, before)
  return Date.now() - start
}

const median = (list) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]

const work = job('the audit log with a million entries is quick', async () => {
  const t = await demoTenant()
  const filled = await fetch(`${at.backstage}/entries?tenant=${t.name}&count=${count}`, { method: 'POST' })
  assert.equal(filled.status, 200, await filled.text())
  const page = await open()
  await signIn(page, t, t.email('olivia'), '/settings/api-keys')
  const times = { firsts: [], pages: [] }
  for (const [name, query] of [['all', ''], ['errors', '?status=5xx'], ['a rare endpoint', '?endpoint=/custom/rare'], ['a path', '?q=/data/contact']]) {
    await step(`${name}: first rows and further pages`, async () => {
      const firsts = []
      for (let i = 0; i < 3; i++) {
        await page.goto(`${t.admin}/settings/api-keys`)
        await page.getByRole('heading', { name: /API keys/ }).waitFor()
        // Within the console, as a person goes there: the program is loaded.
        firsts.push(await timed(page, () => page.evaluate((to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')) }, `/admin/settings/audit${query}`)))
      }
      const older = page.getByRole('button', { name: 'Older' })
      const pages = []
      for (let i = 0; i < 6 && await older.count() > 0 && await older.isEnabled(); i++) pages.push(await timed(page, () => older.click()))
      times.firsts.push(median(firsts))
      times.pages.push(...pages)
      console.log(`      ${name}: first rows ${median(firsts)} ms (${firsts.join(', ')}), further pages ${pages.length ? median(pages) : '–'} ms (${pages.join(', ')})`)
    })
  }
  assert.ok(Math.max(...times.firsts) < 1000, 'the first rows take longer than a second')
  assert.ok(median(times.pages) < 300, 'further pages take longer than 300 ms')
})

export default at.prove ? work : []
