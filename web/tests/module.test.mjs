// A module is written, imported by a component, and kept while it is.
import { demoTenant, job, open, signIn, step, waitForText } from './lib/stage.mjs'

/** fill puts text in the place of what an editor has. */
async function fill(page, label, text) {
  await page.getByRole('textbox', { name: label }).click()
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(text)
}

const save = (page) => page.getByRole('button', { name: /^Save/ }).click()

export default job('a module is written, imported, and kept while it is', async () => {
  const t = await demoTenant()
  const page = await open()
  await signIn(page, t, t.email('olivia'), '/build/modules')
  await step('a mistake in a new module is shown at its line', async () => {
    await page.getByRole('button', { name: 'New module' }).first().click()
    await page.getByLabel('Name of the new module').fill('pricing')
    await page.keyboard.press('Enter')
    await fill(page, 'Source of pricing', 'export function gross(net) {\n  return net * \n}\n')
    await save(page)
    await page.locator('.cm-badline').waitFor()
  })
  await step('mended, it is saved', async () => {
    await fill(page, 'Source of pricing', 'export function gross(net) {\n  return net * 1.19\n}\n')
    await save(page)
    await waitForText(page, 'pricing is saved')
    await page.getByText('not saved yet').waitFor({ state: 'detached' })
  })
  await step('a component imports it, and runs', async () => {
    await page.goto(`${t.admin}/build/components/invoice?new=1`)
    await fill(page, 'Source of invoice', 'import {gross} from "pricing"\nexport default function handler(inputs) {\n  return {gross: gross(inputs.net)}\n}\n')
    await fill(page, 'Sample input', '{"net": 100}')
    await page.getByRole('button', { name: /^Run/ }).click()
    await page.getByRole('region', { name: 'Result of the run' }).getByText('"gross": 119').waitFor()
    await save(page)
    await waitForText(page, 'invoice is saved')
  })
  await step('the module names who imports it, and cannot be deleted', async () => {
    await page.goto(`${t.admin}/build/modules`)
    await page.getByRole('grid').getByText('component invoice').waitFor()
    await page.getByRole('link', { name: 'pricing' }).click()
    await page.getByRole('tab', { name: /Imported by/ }).click()
    await page.getByRole('link', { name: 'component invoice' }).waitFor()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('button', { name: 'Delete pricing' }).click()
    await page.getByRole('alert').getByText(/pricing/).first().waitFor()
    await page.keyboard.press('Escape')
  })
  await step('a change that breaks its importer is refused, with the reason', async () => {
    await page.getByRole('tab', { name: 'Code' }).click()
    await fill(page, 'Source of pricing', 'export function net(gross) {\n  return gross / 1.19\n}\n')
    await save(page)
    await page.getByRole('alert').getByText(/gross/).first().waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
  })
  await step('its history has the change', async () => {
    await page.getByRole('tab', { name: 'History' }).click()
    await page.getByText('olivia').first().waitFor()
  })
})
