// Nobody is stuck: too few rights, an ended session, the API off, a server that does not answer, what was removed, back and forward, double clicks, two tabs.
// With GATEHOUSE_PROVE=1 on every page; in "make test" a few links, and what saves.
import assert from 'node:assert/strict'
import { otherPages, railPages, settled } from './lib/looks.mjs'
import { at, cli, demoTenant, job, look, open, password, signIn, step, waitForText } from './lib/stage.mjs'

/** alive fails on a page that waits for ever, is empty, or shows what nobody can read. */
async function alive(page, name) {
  await settled(page).catch(() => { assert.fail(`${name} goes on waiting`) })
  const text = await page.locator('body').innerText()
  assert.ok(text.trim().length > 40, `${name} is empty`)
  assert.doesNotMatch(text, /\bundefined\b|\[object |\bNaN\b|This page stopped/, `${name} shows what nobody can read`)
}

/** each works on all of a list, and fails with all that failed. */
async function each(list, work) {
  const failed = []
  for (const one of list) await work(one).catch((error) => { console.log(`      ${one.name ?? one}: ${error.message.split('\n')[0]}`); failed.push(`${one.name ?? one}: ${error.message}`) })
  assert.deepEqual(failed, [])
}

async function allPages(t) {
  const page = await open()
  await signIn(page, t, t.email('olivia'), '/account')
  const pages = [...(await railPages(page)), ...(await otherPages(t))].filter((p) => !p.bare)
  await page.context().close()
  return pages
}

const rights = job('too few rights, an ended session, the API off', async () => {
  const t = await demoTenant()
  await cli(['apply', '-f', '-'], `tenant: ${t.name}\nexternal_identity: {limits: {login_per_ip_per_minute: 600, login_per_email_per_15_minutes: 600}}\n`)
  const pages = await allPages(t)
  await step('who may little is told what is missing, on every page', async () => {
    const page = await open()
    await signIn(page, t, t.email('uma'), '/data')
    await each(pages, async (one) => {
      await page.goto(t.admin + one.path)
      await alive(page, one.name)
      if (await page.getByText('This is not open to you').count()) await page.getByText(/It needs the system permission/).first().waitFor()
    })
  })
  await step('a session that has ended asks to sign in, and comes back to the same page', async () => {
    await each(pages.filter((_, i) => i % 4 === 0), async (one) => {
      const page = look(await open())
      await page.goto(t.admin + one.path)
      await page.getByLabel('E-mail').fill(t.email('olivia'))
      await page.getByLabel('Password', { exact: true }).fill(password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('navigation', { name: 'Main' }).waitFor()
      await alive(page, one.name)
      const here = new URL(page.url())
      assert.equal(decodeURIComponent(here.pathname.replace('/admin', '') + here.search), decodeURIComponent(one.path))
      await page.context().close()
    })
  })
  await step('with the API off every page works, and says so', async () => {
    await cli(['apply', '-f', '-'], `tenant: ${t.name}\npublic_api: {enabled: false}\n`)
    const page = look(await open())
    await signIn(page, t, t.email('olivia'), '/settings/api-keys')
    await waitForText(page, 'Public API off')
    await each(pages, async (one) => { await page.goto(t.admin + one.path); await alive(page, one.name) })
  })
})

const gone = ['/users?row=nobody@nowhere.example', '/settings/roles?row=nobody', '/settings/sharing-rules?row=nothing', '/settings/api-keys?row=01a00000-0000-7000-8000-000000000000', '/build/events?row=01a00000-0000-7000-8000-000000000000',
  '/build/runs?row=01a00000-0000-7000-8000-000000000000', '/settings/audit?row=01a00000-0000-7000-8000-000000000000', '/settings/history?row=01a00000-0000-7000-8000-000000000000', '/settings/endpoints/nothing', '/settings/templates/nothing',
  '/settings/permission-sets/nothing', '/build/entities/nothing', '/build/components/nothing', '/build/automations/nothing', '/data/nothing', '/data/contact?row=01a00000-0000-7000-8000-000000000000', '/data/contact?row=nothing',
  '/api-reference?op=nothing', '/api-reference?as=key:01a00000-0000-7000-8000-000000000000', '/api-reference?as=user:01a00000-0000-7000-8000-000000000000', '/build/entities/contact?field=nothing', '/build/automations/web_lead?step=nodes%5B99%5D',
  '/build/automations/web_lead?run=01a00000-0000-7000-8000-000000000000', '/build/components/quote?tab=nothing', '/settings/audit?range=nothing', '/data/contact?filter%5Bnothing%5D=1', '/nothing/at/all', '/reset-password', '/build/verifier?endpoint=nothing']
/** These say nothing of what is gone, because the page goes on without it. */
const quiet = /op=nothing|field=nothing|step=|tab=nothing|range=nothing|filter%5Bnothing|reset-password|verifier/

const removed = job('links to what was removed, back and forward', async () => {
  const t = await demoTenant()
  const page = await open()
  await signIn(page, t, t.email('olivia'), '/data')
  await step('each link to something that is gone says so', async () => {
    await each(at.prove ? gone : ['/settings/roles?row=nobody', '/settings/api-keys?row=01a00000-0000-7000-8000-000000000000', '/build/components/nothing'], async (path) => {
      await page.goto(t.admin + path)
      await alive(page, path)
      if (!quiet.test(path)) await page.getByText(/There is no|no such|was not found|Nothing is at this address|nobody here|is gone|not kept/i).first().waitFor({ timeout: 15_000 })
    })
  })
  await step('back shuts a drawer, forward opens it again', async () => {
    await page.goto(`${t.admin}/users`)
    await page.getByRole('row').filter({ hasText: 'Sam Okafor' }).click()
    const drawer = page.getByRole('complementary', { name: 'User Sam Okafor' })
    await drawer.waitFor()
    await page.goBack()
    await drawer.waitFor({ state: 'detached' })
    assert.match(page.url(), /\/users$/)
    await page.goForward()
    await drawer.waitFor()
    await drawer.getByRole('button', { name: 'Close' }).click()
    await drawer.waitFor({ state: 'detached' })
  })
  await step('an edit in a drawer outlives back and forward', async () => {
    await page.goto(`${t.admin}/users?row=${encodeURIComponent(t.email('sam'))}`)
    await page.getByLabel('Name', { exact: true }).fill('Samuel Okafor')
    await page.getByRole('complementary', { name: /^User/ }).getByRole('button', { name: 'Close' }).click()
    await page.goto(`${t.admin}/users?row=${encodeURIComponent(t.email('sam'))}`)
    await page.getByLabel('Name', { exact: true }).waitFor()
    assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'Samuel Okafor')
  })
})

/** twice presses a button twice at once, and fails when that made more than one change. */
async function twice(page, button, done) {
  let made = 0
  const count = (response) => { if (response.request().method() !== 'GET' && !/\/(plan|check|preview)$/.test(new URL(response.url()).pathname) && response.url().includes('/admin/v1/') && response.ok()) made++ }
  page.on('response', count)
  await button.evaluate((node) => { node.click(); node.click() })
  await done()
  await page.waitForLoadState('networkidle')
  page.off('response', count)
  assert.equal(made, 1, `two clicks on a button made ${made} changes`)
}

const saves = job('double clicks, a server that does not answer, two tabs', async () => {
  const t = await demoTenant()
  const page = await open({ expected: /Failed to load resource: net::ERR|Failed to fetch dynamically imported module/ })
  await signIn(page, t, t.email('olivia'), '/settings/roles?new=1')
  const drawer = page.locator('aside.drawer')
  await step('two clicks on a button save once', async () => {
    await drawer.getByLabel('Name').fill('auditor')
    await twice(page, drawer.getByRole('button', { name: 'Add role' }), () => page.getByRole('list', { name: 'Roles' }).getByRole('button', { name: 'auditor' }).waitFor())
    await page.goto(`${t.admin}/settings/api-keys?new=1`)
    await drawer.getByLabel('Name').fill('one key')
    await twice(page, drawer.getByRole('button', { name: 'Make the key' }), () => page.getByTestId('secret').waitFor())
    await page.getByLabel('I have stored it').check()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.goto(`${t.admin}/data/account?row=new`)
    await drawer.getByLabel('name').fill('One account')
    await twice(page, drawer.getByRole('button', { name: 'Create account' }), () => drawer.getByRole('heading', { name: 'One account' }).waitFor())
    if (!at.prove) return
    await page.goto(`${t.admin}/users?new=1`)
    await drawer.getByLabel('E-mail').fill('new@staff.example')
    await twice(page, drawer.getByRole('button', { name: 'Add user' }), () => page.getByRole('row').filter({ hasText: 'new@staff.example' }).waitFor())
    await page.goto(`${t.admin}/build/components/quote`)
    await page.getByRole('textbox', { name: 'Source of quote' }).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.insertText('// a remark\n')
    await twice(page, page.getByRole('button', { name: /^Save/ }), () => waitForText(page, 'quote is saved'))
    const savedBar = () => page.getByRole('region', { name: 'Unsaved changes' }).waitFor({ state: 'detached' })
    await page.goto(`${t.admin}/settings/endpoints/quote?edit=1`)
    await page.getByRole('switch', { name: 'Keep successful requests in the audit log' }).click()
    await twice(page, page.getByRole('button', { name: /^Save/ }), () => page.waitForURL((at) => !at.search.includes('edit=1')))
    await page.goto(`${t.admin}/settings/permission-sets/support`)
    await page.getByRole('checkbox', { name: 'create account', exact: true }).click()
    await twice(page, page.getByRole('button', { name: 'Save changes' }), savedBar)
    await page.goto(`${t.admin}/settings/templates/external-user-welcome`)
    await page.getByLabel('Subject').fill('Welcome, {{name}}')
    await twice(page, page.getByRole('button', { name: /^Save/ }), savedBar)
    await page.goto(`${t.admin}/settings/sharing-rules?new=1`)
    for (const [label, option] of [['Records of', 'account'], ['Owned by users with role', 'sales_rep'], ['Role', 'support_agent']]) {
      await drawer.getByLabel(label, { exact: true }).click()
      await page.getByRole('option', { name: option, exact: true }).click()
    }
    await twice(page, drawer.getByRole('button', { name: 'Add rule' }), () => drawer.waitFor({ state: 'detached' }))
    await page.goto(`${t.admin}/settings/external-users?view=settings`)
    await page.getByLabel('Requests of an external user').fill('900')
    await twice(page, page.getByRole('button', { name: 'Save changes' }), savedBar)
  })
  await step('a save is over also when what it changed is drawn before the rest has come', async () => {
    const slow = async (route) => { await new Promise((go) => { setTimeout(go, 700) }); await route.continue().catch(() => { /* it is not waited for any more */ }) }
    await page.route('**/admin/v1/endpoints**', slow)
    await page.goto(`${t.admin}/settings/endpoints/again?new=1&component=quote`)
    await page.getByRole('button', { name: /^Publish/ }).click()
    await waitForText(page, 'again is published')
    await page.goto(`${t.admin}/settings/endpoints/again?edit=1`)
    await page.getByRole('switch', { name: 'Keep successful requests in the audit log' }).click()
    await page.getByRole('button', { name: /^Save/ }).click()
    await waitForText(page, 'again is published')
    await page.waitForURL((at) => !at.search.includes('edit=1'))
    assert.equal(await page.getByText('unsaved changes').count() + await page.getByText('Somebody else saved').count(), 0)
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete again' }).click()
    await page.waitForURL(/\/settings\/endpoints$/)
    await page.unroute('**/admin/v1/endpoints**')
  })
  await step('a server that does not answer is told, and what was typed is there when it does', async () => {
    await page.goto(`${t.admin}/settings/api-config`)
    await page.getByLabel('Without a valid credential').fill('900')
    await page.route('**/admin/v1/**', (route) => route.abort('connectionrefused'))
    await page.getByRole('button', { name: 'Save changes' }).click()
    await waitForText(page, 'the server did not answer')
    await page.unroute('**/admin/v1/**')
    await page.getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('region', { name: 'Unsaved changes' }).waitFor({ state: 'detached' })
  })
  await step('a list that could not be loaded is loaded by Try now', async () => {
    await page.route('**/admin/v1/config/role**', (route) => route.fulfill({ status: 500, contentType: 'application/json', body: '{"error":{"code":"INTERNAL","message":"Something failed here","details":{}}}' }))
    await page.goto(`${t.admin}/settings/roles`)
    await waitForText(page, 'Something failed here')
    await page.unroute('**/admin/v1/config/role**')
    await page.getByRole('button', { name: 'Try now' }).first().click()
    await page.getByRole('list', { name: 'Roles' }).waitFor()
  })
  await step('a part of the console that is not there any more offers to load it again', async () => {
    await page.goto(`${t.admin}/settings/roles`)
    await page.getByRole('list', { name: 'Roles' }).waitFor()
    await page.route('**/assets/verifier-*.js', (route) => route.abort('failed'))
    await page.evaluate(() => { history.pushState(null, '', '/admin/build/verifier'); dispatchEvent(new PopStateEvent('popstate')) })
    await page.getByRole('button', { name: 'Load the console again' }).waitFor()
    await page.unroute('**/assets/verifier-*.js')
    await page.getByRole('button', { name: 'Load the console again' }).click()
    await page.getByRole('heading', { name: 'Verifier test bench' }).waitFor()
  })
  await step('two tabs: the second save shows both sides; signed out in one, the other asks', async () => {
    const other = await page.context().newPage()
    for (const one of [page, other]) { await one.goto(`${t.admin}/data/account`); await one.getByRole('row').filter({ hasText: 'One account' }).click(); await one.locator('aside.drawer').getByRole('button', { name: 'Edit fields' }).click() }
    await page.locator('aside.drawer').getByLabel('city').fill('Porto')
    await other.locator('aside.drawer').getByLabel('city').fill('Lyon')
    await page.getByRole('button', { name: 'Save 1 change' }).click()
    await page.getByRole('grid').getByText('Porto').waitFor()
    look(other)
    await other.getByRole('button', { name: 'Save 1 change' }).click()
    await other.getByRole('alert', { name: 'Somebody changed it meanwhile' }).waitFor()
    await other.getByText('Porto').first().waitFor()
    await page.evaluate(() => fetch('/admin/v1/session', { method: 'DELETE' }))
    await other.getByRole('button', { name: 'Save mine over it' }).click()
    await other.getByRole('dialog', { name: 'Sign in to go on' }).waitFor()
    await other.getByLabel('Password', { exact: true }).fill(password)
    await other.keyboard.press('Enter')
    await other.getByRole('dialog').waitFor({ state: 'detached' })
    assert.equal(await other.locator('aside.drawer').count(), 1, 'the drawer is open as it was')
  })
})

export default at.prove ? [rights, removed, saves] : [removed, saves]
