import assert from 'node:assert/strict'
import { ask, cli, demoTenant, job, open, signIn, step, until, waitForText } from './lib/stage.mjs'

const source = `export default function handler(inputs, ctx) {
  console.log("greeting", inputs.name)
  return {hello: inputs.nam.length, by: ctx.user.email}
}
`

/** fill puts text in the place of what an editor has. */
async function fill(page, label, text) {
  const editor = page.getByRole('textbox', { name: label })
  await editor.click()
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText(text)
}

export default job('a component is written, tried, published, called, and its run seen', async () => {
  const t = await demoTenant()
  const page = await open()
  await signIn(page, t, t.email('olivia'), '/build/components')
  await step('a new component, with a mistake: the run stops at its line', async () => {
    await page.getByRole('button', { name: 'New component' }).first().click()
    await page.getByLabel('Name of the new component').fill('greet')
    await page.keyboard.press('Enter')
    await fill(page, 'Source of greet', source)
    await fill(page, 'Sample input', '{"name": "Ada"}')
    await page.getByRole('button', { name: /^Run/ }).click()
    await page.locator('.cm-badline').waitFor()
    assert.match(await page.locator('.cm-inline').innerText(), /3:\d+/)
    await waitForText(page, 'EXECUTION_ERROR')
  })
  await step('mended, it answers and says what it printed and used', async () => {
    await fill(page, 'Source of greet', source.replace('inputs.nam.', 'inputs.name.'))
    await page.locator('.cm-badline').waitFor({ state: 'detached' })
    await page.getByRole('textbox', { name: 'Source of greet' }).press('Control+Enter')
    const result = page.getByRole('region', { name: 'Result of the run' })
    await result.getByText('"hello": 3').waitFor()
    await result.getByText('greeting Ada').waitFor()
    await result.getByText('Records calls').waitFor()
    await result.getByText(/0 of 100/).waitFor()
  })
  await step('what does not compile is told before it is saved, at its line', async () => {
    await fill(page, 'Source of greet', 'export default function handler( {\n')
    await page.locator('.cm-badline').waitFor()
    await fill(page, 'Source of greet', source.replace('inputs.nam.', 'inputs.name.'))
    await page.locator('.cm-badline').waitFor({ state: 'detached' })
  })
  await step('the records of the tenant are offered by name', async () => {
    await page.getByRole('textbox', { name: 'Source of greet' }).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('records.list("con')
    await page.locator('.cm-tooltip-autocomplete').getByText('contact').first().waitFor()
    await page.keyboard.press('Escape')
    await fill(page, 'Source of greet', source.replace('inputs.nam.', 'inputs.name.'))
  })
  await step('it is saved, and published at an endpoint', async () => {
    await page.keyboard.press('Control+s')
    await waitForText(page, 'greet is saved')
    await page.getByRole('tab', { name: /Used by/ }).click()
    await page.getByRole('link', { name: 'Publish it at an endpoint' }).click()
    await page.getByLabel('Slug of the new endpoint').fill('greet-me')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: /^Publish/ }).click()
    await page.getByRole('tab', { name: 'Overview' }).waitFor()
  })
  await step('a call with a key is answered, and its run is on the page of the endpoint', async () => {
    const key = (await cli(['key', 'create', '--tenant', t.name, '--user', t.email('sam'), '--name', 'app'])).trim()
    const answer = await ask(t, 'POST', '/public/v1/custom/greet-me', { token: key, body: { name: 'Grace' } })
    assert.deepEqual([answer.status, answer.body.data.hello], [200, 5])
    await until('the run on the page', async () => {
      await page.reload()
      await page.getByRole('tab', { name: 'Overview' }).waitFor()
      return (await page.getByRole('table', { name: 'Runs' }).getByText('succeeded').count()) > 0
    })
    await page.getByRole('table', { name: 'Runs' }).getByRole('link').first().click()
    await page.getByRole('complementary', { name: /^Run / }).getByText('greeting Grace').waitFor()
  })
})
