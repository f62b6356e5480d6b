// The server is stopped and started again under open pages: what was typed is there, the session goes on, and the live tail with it.
import assert from 'node:assert/strict'
import { ask, at, cli, demoTenant, job, look, open, signIn, step, until, waitForText } from './lib/stage.mjs'

const server = async (what) => {
  const response = await fetch(`${at.backstage}/${what}`, { method: 'POST' })
  assert.equal(response.status, 200, `${what} the server: ${await response.text()}`)
}

export default job('the server is stopped and started again', async () => {
  const t = await demoTenant()
  const key = (await cli(['key', 'create', '--tenant', t.name, '--user', t.email('sam'), '--name', 'calls'])).trim()
  // A page whose server is away has failed requests; all else is a complaint.
  const expected = /net::ERR_|Failed to load resource: the server responded with a status of 503/
  const page = await open({ expected })
  await signIn(page, t, t.email('olivia'), '/settings/api-config')
  const tail = await page.context().newPage()
  await step('an edit is open, and a live tail in another tab', async () => {
    await page.getByLabel('Without a valid credential').fill('900')
    await tail.goto(`${t.admin}/settings/audit`)
    await tail.getByRole('switch', { name: /Live tail/ }).click()
    await tail.getByText('connecting').waitFor({ state: 'detached' })
  })
  await step('the server is stopped while the tail is open', () => server('stop'))
  await step('saving says that the server did not answer; the tail that it waits for it', async () => {
    await page.getByRole('button', { name: 'Save changes' }).click()
    await waitForText(page, 'the server did not answer')
    await tail.getByText('connecting').waitFor()
  })
  await step('the server is started again', () => server('start'))
  await step('the edit is there and is saved without a new sign-in', async () => {
    assert.equal(await page.getByLabel('Without a valid credential').inputValue(), '900')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('region', { name: 'Unsaved changes' }).waitFor({ state: 'detached' })
    assert.match(await cli(['export', '--tenant', t.name]), /900/)
  })
  await step('the live tail goes on by itself', async () => {
    look(tail)
    await until('a call in the tail', async () => {
      await ask(t, 'GET', '/public/v1/data/contact/after', { token: key })
      return tail.getByRole('row', { name: /contact\/after/ }).first().waitFor({ timeout: 2000 }).then(() => true, () => false)
    })
  })
  await step('a page that could not be loaded is loaded by Try now', async () => {
    look(page)
    await page.goto(`${t.admin}/data/contact`)
    await page.getByRole('grid').waitFor()
    await server('stop')
    await page.evaluate(() => { history.pushState(null, '', '/admin/data/account'); dispatchEvent(new PopStateEvent('popstate')) })
    const again = page.getByRole('button', { name: 'Try now' }).first()
    await again.waitFor()
    await server('start')
    await again.click()
    await page.getByRole('grid').waitFor()
    await again.waitFor({ state: 'detached' })
  })
})
