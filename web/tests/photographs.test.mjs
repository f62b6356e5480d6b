// Every page, drawer and dialog of a tenant in use, photographed in both colours at 1440×900 and at 360 into the folder that GATEHOUSE_PHOTOGRAPHS names.
// Without it the script has nothing to do: what a page must keep is checked by looks.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { filledTenant, logged } from './lib/filled.mjs'
import { otherPages, railPages, settled } from './lib/looks.mjs'
import { job, look, open, signIn, step } from './lib/stage.mjs'

const folder = process.env.GATEHOUSE_PHOTOGRAPHS
const only = process.env.GATEHOUSE_PHOTOGRAPHS_ONLY?.split(',')

const photographs = job('every page is photographed', async () => {
  mkdirSync(folder, { recursive: true })
  const t = await filledTenant()
  const first = await open()
  await signIn(first, t, t.email('olivia'), '/account')
  await settled(first)
  await logged(first)
  const state = await first.context().storageState()
  const pages = [...(await railPages(first)), ...(await otherPages(t))].filter((p) => !only || only.some((o) => p.name.includes(o)))
  const failures = []
  for (const width of [1440, 360]) {
    for (const colorScheme of ['light', 'dark']) {
      const view = { width, colorScheme, height: width === 360 ? 780 : 900 }
      const inside = await open({ ...view, storageState: state })
      const outside = await open(view)
      for (const one of pages) {
        const page = look(one.bare ? outside : inside)
        const file = `${one.name}-${colorScheme}-${width}`.toLowerCase().replace(/[^a-z0-9-]+/g, '-')
        await step(file, async () => {
          await page.goto(t.admin + one.path)
          await settled(page)
          if (one.prepare) await one.prepare(page)
          await settled(page)
          await page.screenshot({ path: path.join(folder, `${file}.png`) })
        }).catch((error) => { failures.push(`${file}: ${error.message}`) })
      }
      await inside.context().close()
      await outside.context().close()
    }
  }
  assert.deepEqual(failures, [])
})

export default folder ? photographs : []
