import assert from 'node:assert/strict'
import { demoTenant, job, open, signIn, step, waitForText } from './lib/stage.mjs'

export default job('the verifier test bench', async () => {
  const t = await demoTenant()
  const page = await open()
  await signIn(page, t, t.email('olivia'), '/build/verifier')
  const verdict = page.getByTestId('verdict')
  await step('a delivery that Stripe signed passes', async () => {
    await page.getByRole('button', { name: 'Sign a sample delivery' }).click()
    await page.getByText('Stripe-Signature').waitFor()
    await page.getByRole('button', { name: 'Test the delivery' }).click()
    await verdict.getByText('It passes').waitFor()
    await page.getByRole('region', { name: 'Verdict' }).getByText('evt_1Sample').first().waitFor()
    await page.getByRole('region', { name: 'Verdict' }).getByText('invoice.paid').first().waitFor()
  })
  await step('one that was changed on its way does not, and it says why', async () => {
    await page.getByRole('textbox', { name: 'Body of the delivery' }).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.insertText(' ')
    await page.getByRole('button', { name: 'Test the delivery' }).click()
    await verdict.getByText('The verifier rejects it').waitFor()
    assert.match(await verdict.innerText(), /no v1 signature is right/)
  })
  await step('an old one does not, for its time', async () => {
    await page.getByLabel('Headers').fill('Stripe-Signature: t=1750000000,v1=00')
    await page.getByRole('button', { name: 'Test the delivery' }).click()
    await verdict.getByText('time stamp').waitFor()
  })
  await step('the other providers pass, too', async () => {
    for (const name of ['GitHub', 'Slack', 'Shopify', 'Standard Webhooks', 'Twilio', 'Discord', 'Meta', 'Paddle', 'Mailgun', 'SendGrid', 'A sender of your own']) {
      await page.getByRole('button', { name, exact: true }).click()
      await page.getByLabel('Webhook secret').fill('')
      await page.getByRole('button', { name: 'Sign a sample delivery' }).click()
      await page.getByRole('button', { name: 'Test the delivery' }).click()
      await verdict.getByText('It passes').waitFor()
    }
  })
  await step('a challenge is answered', async () => {
    await page.getByRole('button', { name: 'Meta', exact: true }).click()
    await page.getByLabel('Webhook secret').fill('0123456789abcdef:a-token')
    await page.getByRole('radio', { name: 'GET' }).click()
    await page.getByLabel('Query').fill('hub.mode=subscribe&hub.verify_token=a-token&hub.challenge=1158201444')
    await page.getByRole('button', { name: 'Test the delivery' }).click()
    await verdict.getByText('It answers a challenge').waitFor()
    await page.getByRole('region', { name: 'Verdict' }).getByText('1158201444').waitFor()
  })
  await step('a recipe becomes a component', async () => {
    await page.getByRole('button', { name: 'Stripe', exact: true }).click()
    await page.getByRole('button', { name: 'Make a component of it' }).click()
    await page.getByRole('heading', { name: /stripe_verifier/ }).waitFor()
    await page.getByText('stripe-signature').first().waitFor()
    await page.keyboard.press('Control+s')
    await waitForText(page, 'stripe_verifier is saved')
  })
})
