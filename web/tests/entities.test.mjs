import assert from 'node:assert/strict'
import { cli, job, open, picture, signIn, step, tenant, until, waitForText } from './lib/stage.mjs'

/** Mantine's select: open it, choose an option by its words. */
async function choose(page, label, option) {
  await page.getByRole('combobox', { name: label }).or(page.getByRole('textbox', { name: label })).first().click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

export default job('an entity with fields on a fresh tenant', async () => {
  const t = await tenant()
  const page = await open()
  const exported = () => cli(['export', '--tenant', t.name])
  await step('the empty list says what an entity is', async () => {
    await signIn(page, t, t.email('owner'), '/build/entities')
    await waitForText(page, 'An entity is a kind of record')
  })
  await step('an entity is made', async () => {
    await page.getByRole('button', { name: 'New entity' }).first().click()
    await page.getByLabel('Label').fill('Order line')
    assert.equal(await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue(), 'order_line')
    await page.getByRole('button', { name: 'Make entity' }).click()
    await page.getByRole('heading', { name: 'order_line' }).waitFor()
  })
  await step('two fields are added; a mistake is told at its field', async () => {
    await page.getByRole('button', { name: 'Add field' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Bad Name')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await waitForText(page, 'snake_case')
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('title')
    await page.getByRole('checkbox', { name: 'Required' }).check()
    await page.getByRole('button', { name: 'Add field' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('stage')
    await choose(page, 'Type', 'select')
    await page.getByLabel('Options').fill('open')
    await page.keyboard.press('Enter')
    await page.getByLabel('Options').fill('paid')
    await page.keyboard.press('Enter')
    await waitForText(page, '2 changes')
    await picture(page, 'entity')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('region', { name: 'Unsaved changes' }).waitFor({ state: 'detached' })
    await until('both fields', async () => { const text = await exported(); return /name: title, type: text, required: true/.test(text) && /name: stage, type: select, options: \[open, paid\]/.test(text) })
    await page.getByRole('row', { name: /stage/ }).waitFor()
  })
  await step('a field is renamed with its data, and an edit outlives a reload', async () => {
    await page.getByRole('row', { name: /stage/ }).click()
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('state')
    await waitForText(page, 'Renamed from stage')
    await page.reload()
    await waitForText(page, 'Your edit from before is here')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await until('the rename', async () => /name: state, type: select/.test(await exported()))
    await page.getByRole('region', { name: 'Unsaved changes' }).waitFor({ state: 'detached' })
  })
  await step('removing a field is shown before it is done', async () => {
    await page.getByRole('row', { name: /title/ }).click()
    await page.getByRole('button', { name: 'Remove title' }).click()
    await page.getByRole('button', { name: 'Save changes' }).click()
    await waitForText(page, 'title goes')
    await page.getByRole('button', { name: 'Apply 1 change' }).click()
    await until('the field is gone', async () => !/name: title/.test(await exported()))
  })
  await step('the change history has it, before and after', async () => {
    await page.goto(`${t.admin}/settings/history?kind=entity`)
    await page.getByRole('row', { name: /order_line/ }).first().click()
    await page.getByRole('complementary', { name: /Change of entity/ }).waitFor()
    await waitForText(page, 'fields.title')
    await picture(page, 'history')
  })
})
