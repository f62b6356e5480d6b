import assert from 'node:assert/strict'
import { ask, cli, demoTenant, job, open, signIn, step, until, waitForText } from './lib/stage.mjs'

/** add puts a step of a type in at a +, by keyboard. The graph draws its lines anew once it
 * has measured its nodes; a menu that was open on one shuts, and is opened again. */
async function add(page, where, type) {
  const plus = page.getByRole('button', { name: `Add a step ${where}`, exact: true })
  const item = page.getByRole('menuitem', { name: new RegExp(`^${type.replace('.', '\\.')} `) })
  await until(`a step of ${type}`, async () => {
    if (!await item.isVisible()) await plus.press('Enter')
    return item.click({ timeout: 5_000 }).then(() => true, (e) => { if (e.name !== 'TimeoutError') throw e; return false })
  })
}

export default job('a flow is drawn, run and seen', async () => {
  const t = await demoTenant()
  const page = await open()
  await signIn(page, t, t.email('olivia'), '/build/automations')
  await step('a new automation declares what it takes and answers', async () => {
    await page.getByRole('button', { name: 'New automation' }).first().click()
    await page.getByLabel('Name of the new automation').fill('lead')
    await page.keyboard.press('Enter')
    await page.getByRole('tab', { name: /Inputs and outputs/ }).click()
    await page.getByRole('button', { name: 'Add to inputs' }).click()
    await page.getByLabel('Name of inputs 1').fill('email')
    await page.getByRole('button', { name: 'Add to outputs' }).click()
    await page.getByLabel('Name of outputs 1').fill('id')
    await page.getByRole('tab', { name: /^Flow/ }).click()
  })
  await step('steps are put in on the lines, and filled in their forms', async () => {
    await add(page, 'at the beginning', 'record.list')
    await page.getByRole('region', { name: 'Step known' }).waitFor()
    await page.getByLabel('Entity').click()
    await page.getByRole('option', { name: 'contact', exact: true }).click()
    await page.getByLabel('Add to where').selectOption('email')
    await page.getByRole('textbox', { name: 'Where: email' }).click()
    await page.getByRole('button', { name: 'inputs.email' }).click()
    await add(page, 'after known', 'if')
    await page.getByRole('textbox', { name: 'Condition' }).click()
    await page.keyboard.insertText('len(known.records) == 0')
    await add(page, 'under decision, then', 'record.create')
    await page.getByRole('region', { name: 'Step made' }).waitFor()
    await page.getByLabel('Entity').click()
    await page.getByRole('option', { name: 'contact', exact: true }).click()
    for (const field of ['first_name', 'last_name', 'email']) {
      await page.getByLabel('Add to fields').selectOption(field)
      await page.getByRole('textbox', { name: `Fields: ${field}` }).click()
      await page.getByRole('button', { name: 'inputs.email' }).click()
    }
    await add(page, 'after made', 'output')
    await page.getByLabel('Add to set').selectOption('id')
    await page.getByRole('textbox', { name: 'Set: id' }).click()
    await page.getByRole('button', { name: 'made.id' }).click()
  })
  await step('a step is taken out and back in: undo and redo', async () => {
    await page.getByRole('button', { name: /^Delete the step/ }).click()
    await page.locator('button.nd[data-node="nodes[1].then[1]"]').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: /^Undo/ }).click()
    await page.locator('button.nd[data-node="nodes[1].then[1]"]').waitFor()
  })
  await step('it is run as it is drawn: the way it went stands on the graph', async () => {
    await page.getByRole('button', { name: /^http\.request trigger/ }).click()
    await page.getByRole('textbox', { name: 'Sample input' }).click()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('{"email": "new@example.com"}')
    await page.getByRole('button', { name: /^Run/ }).click()
    await page.getByRole('button', { name: /^made record\.create .*ran in/ }).waitFor()
    await page.getByRole('table', { name: 'Steps of the run' }).getByText('true, so then').waitFor()
    await page.getByRole('table', { name: 'Steps of the run' }).getByRole('button', { name: 'made' }).click()
    await page.getByRole('region', { name: 'Step made' }).getByText('In this run').waitFor()
  })
  await step('the YAML beside it is the same flow, and can be edited', async () => {
    await page.getByRole('tab', { name: 'YAML' }).click()
    const yaml = page.getByRole('textbox', { name: 'The flow as YAML' })
    await yaml.getByText('len(known.records) == 0').waitFor()
    await yaml.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.insertText('  - {type: fail, message: "stopped", status: 418}\n')
    await page.getByRole('tab', { name: /^Flow/ }).click()
    await page.getByRole('button', { name: /^fail / }).waitFor()
    await page.getByRole('button', { name: /^Undo/ }).click()
    await page.getByRole('button', { name: /^fail / }).waitFor({ state: 'detached' })
  })
  await step('saved and called by a key, its run is shown on the flow', async () => {
    await page.keyboard.press('Control+s')
    await waitForText(page, 'lead is saved')
    await cli(['apply', '-f', '-'], `tenant: ${t.name}\ncustom_endpoints:\n  - {slug: lead, target: {automation: lead}}\n`)
    const key = (await cli(['key', 'create', '--tenant', t.name, '--user', t.email('sam'), '--name', 'app'])).trim()
    const answer = await until('the endpoint', async () => { const a = await ask(t, 'POST', '/public/v1/custom/lead', { token: key, body: { email: 'grace@example.com' } }); return a.status === 404 ? undefined : a })
    assert.equal(answer.status, 200, answer.text)
    assert.ok(answer.body.data.id)
    await until('the kept run on the flow', async () => {
      await page.goto(`${t.admin}/build/automations/lead`)
      await page.getByRole('button', { name: /^http\.request trigger/ }).waitFor()
      const older = page.getByRole('button', { name: 'Older' })
      if ((await older.count()) === 0 || !(await older.isEnabled())) return false
      await older.click()
      await page.getByRole('button', { name: /^made record\.create .*ran in/ }).waitFor()
      return true
    })
  })
})
