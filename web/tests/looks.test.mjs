// Every page in both colours at 1440 and 360: photographed, checked with axe, walked by Tab. In "make test" a few of them.
import assert from 'node:assert/strict'
import { filledTenant, logged } from './lib/filled.mjs'
import { noFindings, noOverflow, otherPages, railPages, settled, tabWalk } from './lib/looks.mjs'
import { at, demoTenant, job, look, open, picture, signIn, step } from './lib/stage.mjs'

export default job('every page keeps its width, its contrast and its keyboard', async () => {
  const t = at.prove ? await filledTenant() : await demoTenant()
  const first = await open()
  await signIn(first, t, t.email('olivia'), '/account')
  await settled(first)
  if (at.prove) await logged(first)
  const state = await first.context().storageState()
  const found = [...(await railPages(first)), ...(await otherPages(t))]
  const some = process.env.LOOKS?.split(',') // only these pages
  const pages = some ? found.filter((p) => some.includes(p.name)) : at.prove ? found : found.filter((p) => p.name === 'account' || p.name === 'sign-in')
  const views = at.prove
    ? ['light', 'dark'].flatMap((colorScheme) => [1440, 360].map((width) => ({ colorScheme, width })))
    : [{ colorScheme: 'light', width: 1440 }, { colorScheme: 'dark', width: 360 }]
  const failures = []
  let looked = 0, stops = 0
  for (const view of views) {
    const inside = look(await open({ ...view, storageState: state }))
    const outside = await open(view)
    for (const one of pages) {
      const page = look(one.bare ? outside : inside)
      await step(`${one.name}, ${view.colorScheme}, ${view.width}`, async () => {
        await page.goto(t.admin + one.path)
        await settled(page)
        if (one.prepare) await one.prepare(page)
        const file = `${one.name}-${view.colorScheme}-${view.width}`.toLowerCase().replace(/[^a-z0-9-]+/g, '-')
        if (at.prove) await picture(page, file)
        await noOverflow(page, one.name)
        await noFindings(page, one.name)
        looked++
        if (view.colorScheme === 'light' && !one.waits) stops += await tabWalk(page, one.name, at.prove ? 500 : 60)
      }).catch((error) => {
        // All pages are looked at before the job fails.
        console.log(`    ${one.name}, ${view.colorScheme}, ${view.width}: ${error.message.split('\n').slice(0, 6).join(' ')}`)
        failures.push(`${one.name}, ${view.colorScheme}, ${view.width}: ${error.message}`)
      })
    }
    await inside.context().close()
    await outside.context().close()
  }
  console.log(`    ${pages.length} pages and dialogs, ${looked} views: 0 serious or critical findings but those below; ${stops} stops of Tab`)
  assert.deepEqual(failures, [])
})
