// Every page in both colours at 1440 and 360: photographed, checked with axe, walked by Tab. In "make test" a few of them.
import assert from 'node:assert/strict'
import { noFindings, noOverflow, otherPages, railPages, settled, tabWalk } from './lib/looks.mjs'
import { at, demoTenant, job, look, open, picture, signIn, step } from './lib/stage.mjs'

export default job('every page keeps its width, its contrast and its keyboard', async () => {
  const t = await demoTenant()
  const first = await open()
  await signIn(first, t, t.email('olivia'), '/account')
  await settled(first)
  const state = await first.context().storageState()
  const found = [...(await railPages(first)), ...(await otherPages(t))]
  const pages = at.prove ? found : found.filter((p) => p.name === 'account' || p.name === 'sign-in')
  const views = at.prove
    ? ['light', 'dark'].flatMap((colorScheme) => [1440, 1024, 360].map((width) => ({ colorScheme, width })))
    : [{ colorScheme: 'light', width: 1440 }, { colorScheme: 'dark', width: 360 }]
  const failures = []
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
        if (view.colorScheme === 'light') await tabWalk(page, one.name)
      }).catch((error) => {
        // All pages are looked at before the job fails.
        failures.push(`${one.name}, ${view.colorScheme}, ${view.width}: ${error.message}`)
      })
    }
    await inside.context().close()
    await outside.context().close()
  }
  assert.deepEqual(failures, [])
})
