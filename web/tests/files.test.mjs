// Records come from a file and go into one.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { demoTenant, job, open, signIn, step, waitForText } from './lib/stage.mjs'

const file = (name, text) => ({ name, mimeType: 'text/csv', buffer: Buffer.from(text) })
const people = (n) => `first_name,last_name,email,interests,newsletter\n${Array.from({ length: n }, (_, i) => `Zoë ⁂,Number ${i},n${i}@file.example,"[""pumps""]",true\n`).join('')}`

export default job('records are imported from a file, and exported', async () => {
  const t = await demoTenant()
  const page = await open({ expected: /ERR_FAILED/ })
  await signIn(page, t, t.email('mia'), '/data/contact')
  const drawer = page.getByRole('complementary', { name: 'Import contact' })
  const count = (name) => drawer.locator('dl div', { has: page.getByText(name, { exact: true }) }).locator('dd').innerText()
  const choose = (name, text) => drawer.getByLabel('File with records').setInputFiles(file(name, text))

  await step('a check names the lines that would fail, and keeps nothing', async () => {
    await page.getByRole('button', { name: 'File' }).click()
    await page.getByRole('menuitem', { name: 'Import records' }).click()
    await choose('people.csv', people(3).replace('Number 1', ''))
    await drawer.getByRole('button', { name: 'Check only' }).click()
    await drawer.getByText('Checked; nothing was kept.').waitFor()
    assert.equal(await count('would be created'), '2')
    await drawer.getByText('last_name: required').waitFor()
    await drawer.getByText('line 3').waitFor()
  })
  await step('a file that is no list of contacts is refused with its reason', async () => {
    await choose('other.csv', 'first_name,shoe_size\nAda,38\n')
    await drawer.getByRole('button', { name: 'Import', exact: true }).click()
    await drawer.getByText(/"shoe_size": unknown field/).waitFor()
    await drawer.getByLabel('File with records').setInputFiles({ name: 'latin.csv', mimeType: 'text/csv', buffer: Buffer.from('first_name,last_name\nJ\xfcrgen,M\n', 'latin1') })
    await drawer.getByRole('button', { name: 'Import', exact: true }).click()
    await drawer.getByText(/not in UTF-8/).waitFor()
  })
  await step('an import is stopped, and goes on with the same file', async () => {
    const text = people(2500)
    await choose('people.csv', text)
    await drawer.getByLabel('Records that are there').click()
    await page.getByRole('option', { name: 'found by email' }).click()
    let parts = 0
    await page.route('**/data/contact/import', async (route) => { if (++parts > 4) await route.abort(); else await route.continue() })
    await drawer.getByRole('button', { name: 'Import', exact: true }).click()
    await drawer.getByRole('button', { name: 'Continue' }).waitFor()
    await page.unroute('**/data/contact/import')
    await page.reload()
    await choose('people.csv', text)
    await drawer.getByRole('button', { name: 'Import', exact: true }).click()
    await drawer.getByText(/An import of this file stopped behind line 801: 800 created/).waitFor()
    await drawer.getByRole('button', { name: 'Continue' }).click()
    await drawer.getByText('Imported.').waitFor()
    assert.equal(await count('created'), '2,500')
  })
  await step('the same file again changes nothing', async () => {
    await drawer.getByLabel('Records that are there').click()
    await page.getByRole('option', { name: 'found by email' }).click()
    await drawer.getByRole('button', { name: 'Import', exact: true }).click()
    await drawer.getByText('Imported.').waitFor()
    assert.equal(await count('as they were'), '2,500')
    await drawer.getByRole('button', { name: 'Close' }).click()
  })
  await step('the list that is shown is exported as a file', async () => {
    await page.goto(`${t.admin}/data/contact?filter%5Bemail%5D%5Bprefix%5D=n1`)
    await waitForText(page, 'that match')
    await page.getByRole('button', { name: 'File' }).click()
    await page.getByRole('menuitem', { name: 'Export records' }).click()
    const out = page.getByRole('complementary', { name: 'Export contact' })
    await out.getByText('The records that match the filters').waitFor()
    const saved = page.waitForEvent('download')
    await out.getByRole('button', { name: 'Export', exact: true }).click()
    const download = await saved
    assert.equal(download.suggestedFilename(), 'contact.csv')
    const lines = readFileSync(await download.path(), 'utf8').trimEnd().split('\n')
    const numbers = Array.from({ length: 2500 }, (_, i) => i).filter((i) => `${i}`.startsWith('1'))
    assert.equal(lines.length, 1 + numbers.length)
    assert.match(lines[0], /^id,owner_id,created_at,updated_at,first_name/)
    assert.match(lines[1], /Zoë ⁂/)
    await out.getByText(`${numbers.length.toLocaleString('en')} records are in contact.csv`).waitFor()
  })
  await step('at 360 px an import can be begun', async () => {
    await page.setViewportSize({ width: 360, height: 780 })
    await page.goto(`${t.admin}/data/contact`)
    await page.getByRole('button', { name: 'File' }).click()
    await page.getByRole('menuitem', { name: 'Import records' }).click()
    await drawer.getByRole('button', { name: 'Choose a file' }).waitFor()
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the page is wider than the window')
  })
})
