// Hostile strings in every place that holds text, and on every page that shows it: none runs, none breaks the layout, the security policy has nothing to say.
// In "make test" a few of them on the pages that show most; with GATEHOUSE_PROVE=1 all, through every text field and on every page, drawer and dialog.
import assert from 'node:assert/strict'
import { filledTenant, logged } from './lib/filled.mjs'
import { few, hostile } from './lib/hostile.mjs'
import { noOverflow, otherPages, railPages, settled } from './lib/looks.mjs'
import { ask, at, cli, demoTenant, job, look, open, signIn, step } from './lib/stage.mjs'

const strings = at.prove ? hostile : few(26)

const manifest = (t) => `tenant: ${t.name}
entities:
  - {name: note, fields: [{name: title, type: text, indexed: true}, {name: body, type: text}, {name: data, type: json}]}
logic_components:
  - {name: shout, inputs: [{name: text, type: text}], source: "export default ({text, stop}) => { console.log(text); console.error('at', text); if (stop) fail(text || 'empty', {status: 418, details: {text}}); return {text} }"}
custom_endpoints:
  - {slug: shout, target: {component: shout}}
  - {slug: shout-hook, target: {component: shout}, auth: token, run_as: ${t.email('sam')}}
`

/** put makes one request for each string from the page, as its user; it gives how many were stored, and fails on another answer than a plain refusal. */
async function put(page, what, bodies) {
  const answers = await page.evaluate(async (list) => Promise.all(list.map(async ([where, body]) => {
    const answer = await fetch(`/admin/v1/${where}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
    return { status: answer.status, text: await answer.text() }
  })), bodies)
  const odd = answers.filter((a) => a.status >= 500 || (a.status >= 400 && !JSON.parse(a.text).error.message))
  assert.deepEqual(odd, [], `${what}: expected each to be stored or refused with a reason`)
  return answers.filter((a) => a.status < 300).length
}

const edit = (kind, name, value) => ['config/apply', { edits: [{ kind, name, value, against: 'absent' }] }]

/** fill stores the strings wherever the API takes text. */
async function fill(t, page) {
  const counts = {}
  counts.records = await put(page, 'records', strings.map((s) => ['data/note', { title: s.slice(0, 400), body: s, data: { [s.slice(0, 60)]: s } }]))
  counts.keys = await put(page, 'keys', strings.map((s) => ['keys', { name: s }]))
  let n = 0
  for (const s of strings) {
    counts.users = (counts.users ?? 0) + await put(page, 'users', [edit('user', `u${++n}@hostile.example`, { email: `u${n}@hostile.example`, name: s, ...(n % 2 ? { type: 'external' } : {}) })])
    if (at.prove) {
      for (const kind of ['role', 'permission_set']) counts[kind] = (counts[kind] ?? 0) + await put(page, kind, [edit(kind, s, { name: s })])
      if (n % 9 !== 0) continue // each makes the configuration that every change checks larger
      counts.label = (counts.label ?? 0) + await put(page, 'entity', [edit('entity', `e${n}`, { name: `e${n}`, label: s, fields: [{ name: 'kind', type: 'select', options: [s, 'other'] }] })])
      counts.rules = (counts.rules ?? 0) + await put(page, 'sharing rule', [['config/apply', { edits: [{ kind: 'sharing_rule', value: { entity: 'note', where: { title: s }, share_with: 'internal', access: 'read' } }] }]])
    }
  }
  await call(t, counts)
  return counts
}

/** call sends the strings as paths, queries, agents and bodies: they reach the audit log, runs, console lines and events. */
async function call(t, counts) {
  const key = (await cli(['key', 'create', '--tenant', t.name, '--user', t.email('olivia'), '--name', 'hostile calls', '--rate-limit', '100000'])).trim()
  const hook = (await cli(['endpoint', 'token', '--tenant', t.name, '--slug', 'shout-hook'])).trim()
  const plain = (s) => s.replace(/[^\x20-\x7e]/g, '').slice(0, 200)
  counts.calls = 0
  for (const [i, s] of strings.entries()) {
    const headers = { 'User-Agent': plain(s) || 'none', 'X-Request-Note': plain(s) }
    const part = encodeURIComponent(s.toWellFormed()).slice(0, 900).replace(/%[0-9A-F]?$/, '')
    const answers = [
      await ask(t, 'GET', `/public/v1/data/note?filter%5Btitle%5D=${part}`, { token: key, headers }),
      await ask(t, 'GET', `/public/v1/data/note/${part}`, { token: key, headers }),
      await ask(t, 'POST', '/public/v1/custom/shout', { token: key, headers, body: { text: s, stop: i % 2 === 1 } }),
      await ask(t, 'POST', '/public/v1/custom/shout-hook', { headers: { ...headers, 'X-Webhook-Token': hook, 'Idempotency-Key': plain(s) || `k${i}` }, body: { text: s, stop: i % 3 === 0 } }),
    ]
    for (const a of answers) assert.ok(a.status < 500, `${a.status}: ${a.text.slice(0, 300)}`)
    counts.calls += answers.length
  }
}

/** still fails when a string ran, or when the page is not as it was: its frame, and nothing in it that a string could have made. */
async function still(page, name) {
  const found = await page.evaluate(() => ({
    ran: window.__canary ?? 0,
    frame: [...document.querySelectorAll('#root > .app > .rail, #root > .app > .main > header.top, #root > .app > .main > main#page')].length,
    made: [...document.querySelectorAll('#root script, #root [onerror], #root [onload], #root [ontoggle], #root base, #root meta, #root a[href^="javascript:" i], #root a[href^="data:" i], #root iframe:not(.cfg-mail), #root math')].map((n) => n.outerHTML.slice(0, 120)),
    title: document.title,
  }))
  assert.equal(found.ran, 0, `${name}: a script ran`)
  assert.deepEqual(found.made, [], `${name}: a string became an element`)
  assert.ok(found.frame >= 2, `${name}: the frame of the page is broken`)
  await noOverflow(page, name)
}

/** scrollThrough shows every row of the list, page by page. */
async function scrollThrough(page, name) {
  for (let pages = 0; pages < 12; pages++) {
    const frame = page.locator('.tblframe').first()
    if (await frame.count()) {
      const height = await frame.evaluate((n) => n.scrollHeight)
      for (let y = 0; y < height; y += 700) { await frame.evaluate((n, to) => { n.scrollTop = to }, y); await still(page, name) }
    }
    const next = page.getByRole('button', { name: /^(Next|Older)$/ })
    if (!(await next.count()) || !(await next.first().isEnabled())) return
    await next.first().evaluate((button) => { button.click() }) // a drawer may lie over it
    await settled(page)
  }
}

/** typeAll puts every string into every text field that is on the page; it gives how many fields there were. */
async function typeAll(page, name) {
  const fields = page.locator('#root input:is([type=text], [type=search], [type=email], [type=url], [type=password], :not([type])), #root textarea, [role=dialog] input[type=text], [role=dialog] textarea')
  let count = 0
  for (let i = 0; i < await fields.count(); i++) {
    const field = fields.nth(i)
    if (!(await field.isVisible()) || !(await field.isEnabled()) || !(await field.isEditable())) continue
    count++
    await field.evaluate(async (node, list) => {
      const set = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(node), 'value').set
      for (const [at, s] of list.entries()) {
        set.call(node, s)
        node.dispatchEvent(new Event('input', { bubbles: true }))
        if (at % 12 === 0) await new Promise((go) => { requestAnimationFrame(go) })
      }
      await new Promise((go) => { setTimeout(go, 50) })
    }, [...strings, strings.at(-1)])
    await still(page, `${name}, field ${i + 1}`)
  }
  const dialog = await page.locator('[role=dialog][aria-modal=true]').count()
  const editors = page.locator(`${dialog ? '[role=dialog] ' : ''}.cm-content[contenteditable=true]`)
  for (let i = 0; i < await editors.count(); i++) {
    count++
    await editors.nth(i).click()
    for (const s of few(12)) { await page.keyboard.press('Control+a'); await page.keyboard.insertText(s.toWellFormed()) }
    await still(page, `${name}, editor ${i + 1}`)
  }
  return count
}

/** watched is a page on which any dialog of the browser's own but the question before leaving is a script that ran. */
async function watched(view, state, said) {
  const page = await open({ ...view, storageState: state, expected: /(Blocked script execution in 'about:srcdoc'|Refused to execute the redirect .*about:srcdoc)/ })
  page.on('dialog', (dialog) => { if (dialog.type() !== 'beforeunload') said.push(dialog.message()); void dialog.accept() })
  return page
}

export default job('hostile strings are shown as they are', async () => {
  const t = at.prove ? await filledTenant() : await demoTenant()
  await cli(['apply', '-f', '-'], manifest(t))
  const first = await open()
  await signIn(first, t, t.email('olivia'), '/data')
  let counts
  await step('they are stored or refused, never half', async () => { counts = await fill(t, first) })
  await step('and logged', () => (at.prove ? logged(first) : settled(first)))
  const state = await first.context().storageState()
  const said = []
  const some = process.env.LOOKS?.split(',') // only these pages
  const shown = at.prove ? [...(await railPages(first)), ...(await otherPages(t)).filter((p) => !p.bare)].filter((p) => !some || some.includes(p.name))
    : ['/data/note', '/users', '/settings/external-users', '/settings/api-keys', '/build/runs', '/settings/audit'].map((path) => ({ name: path, path }))
  let views = 0
  for (const view of [{ width: 1440, height: 900 }, { width: 360, height: 780, colorScheme: 'dark' }]) {
    const page = look(await watched(view, state, said))
    for (const one of at.prove || view.width === 1440 ? shown : shown.filter((p) => /note|audit/.test(p.path))) {
      await step(`${one.name} at ${view.width}`, async () => {
        await page.goto(t.admin + one.path)
        await settled(page)
        if (at.prove) await prepared(page, one)
        await still(page, one.name)
        if (at.prove || view.width === 1440) await scrollThrough(page, one.name)
        views++
      })
    }
    if (view.width === 1440 || at.prove) {
      await step(`each record in its drawer at ${view.width}`, async () => { views += await drawers(page, t, '/data/note', /Next in the list/) })
      await step(`each request in full at ${view.width}`, async () => { views += await entries(page, t) })
    }
    await page.context().close()
  }
  let fields = 0
  if (at.prove) {
    const page = look(await watched({ width: 1440, height: 900 }, state, said))
    for (const one of shown) {
      await step(`typed on ${one.name}`, async () => {
        await page.evaluate(() => { try { sessionStorage.clear() } catch { /* the first page is blank */ } })
        await page.goto(t.admin + one.path)
        await settled(page)
        await prepared(page, one)
        fields += await typeAll(page, one.name)
      })
    }
  }
  assert.deepEqual(said, [], 'a script opened a dialog')
  console.log(`    ${strings.length} strings; stored: ${JSON.stringify(counts)}; ${views} views of ${shown.length} pages; ${fields} fields typed into; 0 scripts, 0 violations`)
})

/** prepared prepares a page, as far as it goes: among hostile names what a preparation looks for may be far down. */
async function prepared(page, one) {
  page.setDefaultTimeout(5_000)
  await one.prepare?.(page).catch((error) => { console.log(`      not prepared: ${error.message.split('\n')[0]}`) })
  page.setDefaultTimeout(60_000)
}

/** drawers opens the first row of a list and steps through all of them. */
async function drawers(page, t, path, next) {
  await page.goto(t.admin + path)
  await settled(page)
  await page.locator('[role=grid] tbody tr[role=row]').first().click()
  let seen = 0
  for (; seen < (at.prove ? strings.length : 8); seen++) {
    await page.locator('aside.drawer dl').first().waitFor()
    await still(page, `record ${seen + 1}`)
    const step = page.getByRole('button', { name: next })
    const was = page.url()
    await step.click()
    if (page.url() === was) break
  }
  return seen
}

/** entries opens the newest entries of the audit log, one after the other. */
async function entries(page, t) {
  await page.goto(`${t.admin}/settings/audit?endpoint=/custom/*`)
  await settled(page)
  const rows = page.locator('[role=grid] tbody tr[role=row]:not(.det)')
  const count = Math.min(await rows.count(), at.prove ? 30 : 2)
  for (let i = 0; i < count; i++) {
    const row = page.locator(`tr[data-index="${i}"]`) // of the rows in view nth is another one once the list has scrolled
    await row.click()
    await page.locator('tr.det').waitFor()
    await still(page, `entry ${i + 1}`)
    await row.click({ position: { x: 20, y: 8 } }) // elsewhere: two clicks at one place choose a word
    await page.locator('tr.det').waitFor({ state: 'detached' })
  }
  return count
}
