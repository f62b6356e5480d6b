// What every page must keep: nothing wider than the screen, no serious finding of axe, the keyboard reaches everything and is seen.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** settled waits until the page has its head and nothing loads any more. */
export async function settled(page) {
  await page.locator('h1').first().waitFor({ state: 'attached' }) // at 360 its words are for screen readers alone
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true], .skel, .waiting') && document.fonts.status === 'loaded', undefined, { timeout: 20_000 })
}

/** noOverflow: nothing makes the page wider than the window. Frames that scroll by themselves may be. */
export async function noOverflow(page, name) {
  const over = await page.evaluate(() => {
    const wide = document.documentElement.clientWidth
    const scrolls = (node) => { for (let n = node.parentElement; n; n = n.parentElement) { const style = getComputedStyle(n); if (/auto|scroll|hidden|clip/.test(style.overflowX) && n.getBoundingClientRect().right <= wide + 1) return true } return false }
    if (document.documentElement.scrollWidth <= wide) return []
    return [...document.querySelectorAll('body *')].filter((n) => { const r = n.getBoundingClientRect(); return r.width > 0 && r.right > wide + 1 && !scrolls(n) }).slice(0, 5).map((n) => `${n.tagName.toLowerCase()}.${n.className?.baseVal ?? n.className} to ${Math.round(n.getBoundingClientRect().right)} of ${wide}`)
  })
  assert.deepEqual(over, [], `${name} is wider than the window`)
}

/** noFindings: axe finds nothing serious or critical. */
export async function noFindings(page, name) {
  await page.evaluate(axeSource) // not a script of the page: the security policy has no say in it
  const found = await page.evaluate(async () => {
    const result = await window.axe.run(document, { resultTypes: ['violations'] })
    return result.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical').map((v) => `${v.impact} ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.target.join(' ')} (${(n.any[0] ?? n.all[0] ?? n.none[0])?.message ?? ''})`).join('; ')}`)
  })
  assert.deepEqual(found, [], `axe on ${name}`)
}

/**
 * tabWalk presses Tab through the page: each stop can be seen and shows that it has the focus, none holds it, and once
 * round, all that can be used was reached. An editor of code is left by Escape, Tab. It gives how many stops there were.
 */
export async function tabWalk(page, name, most = 60) {
  await page.evaluate(() => { document.activeElement?.blur(); window.scrollTo(0, 0); window.__walked = new Set() })
  let stops = 0, round = false, ends = 0, editor = false
  for (; stops < most && !round; stops++) {
    if (editor) await page.keyboard.press('Escape') // there Tab alone would write
    await page.keyboard.press('Tab')
    const at = await page.evaluate(stop)
    editor = at?.editor
    // The walk begins where the focus was: past the end it goes on from the beginning, once.
    if (!at && ends++ === 0) continue
    if (!at || at.first || at.again && at.only) { round = true; break }
    assert.ok(at.size > 0, `${name}: Tab ${stops + 1} goes to ${at.what}, which cannot be seen`)
    assert.ok(at.shows, `${name}: ${at.what} does not show that it has the focus`)
    assert.ok(!at.again || at.parts || at.only, `${name}: Tab does not leave ${at.what}`)
  }
  if (round) assert.deepEqual(await page.evaluate(notReached), [], `${name}: Tab does not reach everything`)
  return stops
}

/** stop describes the element that has the focus, in the page. */
function stop() {
  const n = document.activeElement
  if (!n || n === document.body) return undefined
  const walked = window.__walked
  const seen = (e) => { const s = getComputedStyle(e); return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== 'none' }
  const r = n.getBoundingClientRect()
  // A dialog with one thing in it keeps the focus there.
  const dialog = n.closest('[role=dialog][aria-modal=true]')
  const at = {
    only: dialog !== null && walked.size > 0 && [...walked].every((w) => w === n || !dialog.contains(w)),
    what: `${n.tagName.toLowerCase()} “${(n.getAttribute('aria-label') ?? n.labels?.[0]?.textContent ?? n.textContent ?? '').trim().slice(0, 40)}” .${n.className}`, size: r.width * r.height, editor: n.classList.contains('cm-content'),
    shows: [n, n.parentElement, n.closest('label'), n.closest('.cm, .tf, .seg'), ...n.querySelectorAll('td')].some((e) => e && seen(e)), again: window.__last === n, parts: /^(date|datetime-local)$/.test(n.type ?? '') || n.tagName === 'IFRAME', first: walked.size > 1 && walked.values().next().value === n && window.__last !== n,
  }
  walked.add(n)
  window.__last = n
  return at
}

/** notReached lists what can be used and was not reached: in the dialog, when one is open. One of a group of radios is enough; rows and tabs are gone through by arrows. */
function notReached() {
  const walked = window.__walked
  const scope = [...document.querySelectorAll('[role=dialog][aria-modal=true]')].at(-1) ?? document.body
  const names = new Set([...walked].filter((n) => n.type === 'radio').map((n) => n.name))
  return [...scope.querySelectorAll('a[href], button:not([disabled]), input:not([disabled]), select:not([disabled]), textarea:not([disabled]), [tabindex="0"], [contenteditable=true]')]
    .filter((n) => n.tabIndex >= 0 && !walked.has(n) && !(n.type === 'radio' && names.has(n.name)) && n.checkVisibility({ checkVisibilityCSS: true }) && !n.closest('[aria-hidden=true], [inert]') && n.getBoundingClientRect().width > 0)
    .slice(0, 5).map((n) => `${n.tagName.toLowerCase()} “${(n.getAttribute('aria-label') ?? n.textContent ?? '').trim().slice(0, 40)}”`)
}

/** railPages opens what is shut in the rail and gives the address of every line. */
export async function railPages(page) {
  const nav = page.getByRole('navigation', { name: 'Main' })
  const shut = nav.locator('button[aria-expanded=false]')
  while (await shut.count()) await shut.first().click()
  return nav.locator('a').evaluateAll((links) => links.map((a) => ({ name: a.textContent.replace(/[\d,]+$/, '').trim(), path: a.pathname.replace(/^\/admin/, '') + a.search })))
}

/** otherPages are those that no line of the rail leads to: each file of web/tests/pages gives some for the demo tenant. */
export async function otherPages(t) {
  const folder = path.join(import.meta.dirname, '../pages')
  const lists = await Promise.all(readdirSync(folder).filter((f) => f.endsWith('.mjs')).sort().map(async (f) => (await import(path.join(folder, f))).default(t)))
  return lists.flat()
}
