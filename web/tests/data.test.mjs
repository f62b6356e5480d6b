import assert from 'node:assert/strict'
import { demoTenant, job, look, open, signIn, step, waitForText } from './lib/stage.mjs'

const drawer = (page) => page.locator('aside.drawer')

export default [
  job('records are browsed, filtered, created, edited and deleted', async () => {
    const t = await demoTenant()
    const page = await open()
    await signIn(page, t, t.email('olivia'), '/data')
    await step('the first entity type opens, and another by its name in the rail', async () => {
      await page.getByRole('heading', { name: /^account/ }).waitFor()
      await page.getByRole('link', { name: 'contact' }).click()
      await page.getByText('No contact yet').waitFor()
    })
    await step('a new record is refused without its required fields, at the fields', async () => {
      await page.getByRole('button', { name: 'New contact' }).first().click()
      await drawer(page).getByRole('button', { name: 'Create contact' }).click()
      await drawer(page).locator('.help.bad', { hasText: 'required' }).first().waitFor()
    })
    await step('with them it is created, with a value for each kind of field', async () => {
      await drawer(page).getByLabel('first_name').fill('Jonas')
      await drawer(page).getByLabel('last_name').fill('Keller')
      await drawer(page).getByLabel('last_contacted').fill('2026-01-31T12:00')
      await drawer(page).getByLabel('newsletter').click()
      await page.getByRole('option', { name: 'yes' }).click()
      await drawer(page).getByRole('button', { name: 'Create contact' }).click()
      await drawer(page).getByRole('heading', { name: 'Jonas Keller' }).waitFor()
      await page.getByRole('grid').getByText('Keller').waitFor()
    })
    await step('a field is edited, and saved once', async () => {
      await drawer(page).getByRole('button', { name: 'Edit fields' }).click()
      await drawer(page).getByLabel('phone').fill('+49 30 1')
      await drawer(page).getByRole('button', { name: 'Save 1 change' }).click()
      await page.getByRole('grid').getByText('+49 30 1').waitFor()
    })
    await step('a filter is in the address, and outlives a reload', async () => {
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Filter', exact: true }).click()
      await page.getByRole('menuitem', { name: 'last_name' }).click()
      await page.getByRole('textbox', { name: 'last_name' }).fill('Nobody')
      await page.keyboard.press('Enter')
      await page.getByText('No record matches').waitFor()
      await page.reload()
      await page.getByText('No record matches').waitFor()
      assert.equal(new URL(page.url()).searchParams.get('filter[last_name]'), 'Nobody')
      await page.getByRole('button', { name: 'Remove the filter last_name' }).click()
      await page.getByRole('grid').getByText('Keller').waitFor()
    })
    await step('a record is deleted after it was asked', async () => {
      await page.getByRole('grid').getByText('Keller').click()
      await drawer(page).getByRole('button', { name: 'More' }).click()
      await page.getByRole('menuitem', { name: /Delete contact/ }).click()
      await page.getByRole('button', { name: 'Delete contact' }).click()
      await page.getByText('No contact yet').waitFor()
    })
  }),

  job('why a peer cannot see a record, and what a share changes', async () => {
    const t = await demoTenant()
    const page = await open()
    await signIn(page, t, t.email('olivia'), '/data/contact?row=new')
    await step('a record is there, owned by Sam', async () => {
      await drawer(page).getByLabel('first_name').fill('Jonas')
      await drawer(page).getByLabel('last_name').fill('Keller')
      await drawer(page).getByLabel('owner_id').fill('Sam')
      await page.getByRole('option', { name: /Sam Okafor/ }).click()
      await drawer(page).getByRole('button', { name: 'Create contact' }).click()
      await drawer(page).getByRole('heading', { name: 'Jonas Keller' }).waitFor()
    })
    await step('Rosa, a peer, cannot read it: the answer says why, and what would open it', async () => {
      await drawer(page).getByRole('tab', { name: 'Who sees it' }).click()
      await drawer(page).getByLabel('Can', { exact: true }).fill('Rosa')
      await page.getByRole('option', { name: /Rosa/ }).click()
      await drawer(page).locator('.verdict.no', { hasText: 'can’t read this contact' }).waitFor()
      await waitForText(page, 'Sam Okafor owns it')
      await waitForText(page, 'peers see nothing of one another')
      await waitForText(page, '404 NOT_FOUND')
      assert.equal(new URL(page.url()).searchParams.get('tab'), 'who')
    })
    await step('a share from there changes the answer, and who sees it', async () => {
      await drawer(page).getByRole('button', { name: 'Share (read)' }).click()
      await drawer(page).locator('.verdict.yes', { hasText: 'can read this contact' }).waitFor()
      await drawer(page).locator('table.seers').getByText('Rosa').first().waitFor()
    })
    await step('Rosa finds it in her list now, and may not change it', async () => {
      const hers = look(await open())
      await signIn(hers, t, t.email('rosa'), '/data/contact')
      await hers.getByRole('grid').getByText('Keller').click()
      await drawer(hers).getByRole('heading', { name: 'Jonas Keller' }).waitFor()
      assert.equal(await drawer(hers).getByRole('button', { name: 'Edit fields' }).count(), 0)
      assert.equal(await drawer(hers).getByRole('button', { name: 'More' }).count(), 0)
    })
    await step('the share is taken back, and the record is gone for her', async () => {
      look(page)
      await drawer(page).getByRole('button', { name: /Take back the share with Rosa/ }).click()
      await drawer(page).locator('.verdict.no').waitFor()
    })
  }),

  job('two people edit one record: the second sees both sides', async () => {
    const t = await demoTenant()
    const page = await open()
    await signIn(page, t, t.email('olivia'), '/data/contact?row=new')
    await drawer(page).getByLabel('first_name').fill('Jonas')
    await drawer(page).getByLabel('last_name').fill('Keller')
    await drawer(page).getByRole('button', { name: 'Create contact' }).click()
    await drawer(page).getByRole('heading', { name: 'Jonas Keller' }).waitFor()
    const other = await open()
    await signIn(other, t, t.email('olivia'), new URL(page.url()).pathname.replace('/admin', '') + new URL(page.url()).search)
    const edit = async (at, title) => {
      await drawer(at).getByRole('button', { name: 'Edit fields' }).click()
      await drawer(at).getByLabel('title').fill(title)
    }
    await step('both begin; the first saves', async () => {
      await edit(page, 'Buyer')
      await edit(other, 'Head of maintenance')
      await drawer(page).getByRole('button', { name: 'Save 1 change' }).click()
      await drawer(page).getByText('Buyer').waitFor()
    })
    await step('the second is shown both, and goes on over the other’s version', async () => {
      look(other)
      await drawer(other).getByRole('button', { name: 'Save 1 change' }).click()
      const conflict = drawer(other).locator('.conflict')
      await conflict.waitFor()
      const sides = await conflict.innerText()
      assert.ok(sides.includes('Buyer') && sides.includes('Head of maintenance'), sides)
      await drawer(other).getByRole('button', { name: 'Go on over their version' }).click()
      await drawer(other).getByRole('button', { name: 'Save 1 change' }).click()
      await drawer(other).getByRole('button', { name: 'Edit fields' }).waitFor()
      await drawer(other).getByText('Head of maintenance').waitFor()
    })
  }),
]
