// A tenant in use: the demo's manifest and records, keys, calls of every outcome, deliveries, end-users, a change. Photographs and looks show it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ask, cli, demoTenant, until } from './stage.mjs'

const records = JSON.parse(readFileSync(path.join(import.meta.dirname, '../../../examples/demo/records.json'), 'utf8'))
const references = { contact: ['account'], opportunity: ['account', 'contact'] }

/** filledTenant is a demoTenant with keys {sam, uma, olivia}, the id of a contact, and what calls leave behind. */
export async function filledTenant() {
  const t = await demoTenant()
  const keys = {}
  for (const who of ['olivia', 'sam', 'uma']) keys[who] = await keyOf(t, who, who === 'sam' ? 'Web shop' : who === 'uma' ? 'Support desk' : 'Nightly import')
  const contact = await fillRecords(t, keys.olivia)
  await callData(t, keys, contact)
  await callEndpoints(t, keys.sam)
  await registerUsers(t)
  await cli(['apply', '-f', '-'], `tenant: ${t.name}\nmodules:\n  - {name: pricing, source: 'export const gross = (net) => net * 1.19'}\nsharing_rules:\n  - {entity: account, where: {tier: silver}, share_with_role: support_agent, access: read}\n`)
  return { ...t, keys, contact }
}

const keyOf = async (t, who, name, ...flags) => (await cli(['key', 'create', '--tenant', t.name, '--user', t.email(who), '--name', name, ...flags])).trim()

/** fillRecords creates the demo's records with the owner's key, each owned by whom the demo says; it gives the id of a contact of Sam. */
async function fillRecords(t, token) {
  const me = (await ask(t, 'GET', '/public/v1/data/user?limit=200', { token })).body.data
  const owner = Object.fromEntries(me.map((u) => [u.email.split('@')[0], u.id]))
  const ids = {}
  let contact
  for (const { entity, key, owner: by, fields } of records) {
    const body = { owner_id: owner[by.split('@')[0]], ...fields }
    for (const name of references[entity] ?? []) if (body[name]) body[name] = ids[body[name]]
    const made = await ask(t, 'POST', `/public/v1/data/${entity}`, { token, body })
    assert.equal(made.status, 201, made.text)
    ids[key] = made.body.data.id
    if (entity === 'contact' && by.startsWith('sam@')) contact = made.body.data.id
  }
  return contact
}

/** callData makes requests that end in each way: answered, refused by a gate, not there, not valid. */
async function callData(t, { sam, uma }, contact) {
  const once = await keyOf(t, 'sam', 'Sensor gateway', '--rate-limit', '2')
  const office = await keyOf(t, 'mia', 'Office only', '--ip-allow', '10.20.0.0/16')
  for (let i = 0; i < 12; i++) await ask(t, 'GET', `/public/v1/data/${['contact', 'account', 'opportunity'][i % 3]}?limit=${10 + i}`, { token: sam })
  await ask(t, 'GET', `/public/v1/data/contact/${contact}`, { token: sam })
  await ask(t, 'PATCH', `/public/v1/data/contact/${contact}`, { token: sam, body: { title: 'Head of purchasing' } })
  await ask(t, 'POST', `/public/v1/data/contact/${contact}/shares`, { token: sam, body: { user: t.email('rosa'), access: 'read' } })
  await ask(t, 'POST', '/public/v1/data/contact', { token: sam, body: { first_name: 7, last_name: 'Lovelace', newsletter: 'often' } })
  await ask(t, 'DELETE', `/public/v1/data/contact/${contact}`, { token: uma })
  await ask(t, 'GET', '/public/v1/data/contacts', { token: uma })
  await ask(t, 'GET', '/public/v1/me', { token: 'svc_api_0000000000000000000000000000000000000000000000000000000000000000' })
  await ask(t, 'GET', '/public/v1/me', { token: office })
  for (let i = 0; i < 4; i++) await ask(t, 'GET', '/public/v1/me', { token: once })
}

/** callEndpoints calls the component and the flow of the demo, with and without success. */
async function callEndpoints(t, token) {
  const lines = [{ item: 'pump', quantity: 2, price: 349.5 }, { item: 'filter', quantity: 12, price: 19.9 }]
  for (const account of ['Alder Works', 'Teal Care', 'Nobody Ltd']) await ask(t, 'POST', '/public/v1/custom/quote', { token, body: { account, lines } })
  await ask(t, 'POST', '/public/v1/custom/quote', { token, body: { account: 'Alder Works' } })
  const hook = (await cli(['endpoint', 'token', '--tenant', t.name, '--slug', 'web-lead'])).trim()
  const deliver = (id, body) => ask(t, 'POST', '/public/v1/custom/web-lead', { headers: { 'X-Webhook-Token': hook, 'Idempotency-Key': id }, body })
  await deliver('lead-1', { first_name: 'Grace', last_name: 'Hopper', email: 'grace@example.com', newsletter: true })
  await deliver('lead-1', { first_name: 'Grace', last_name: 'Hopper', email: 'grace@example.com', newsletter: true })
  await deliver('lead-2', { first_name: 'Katherine', last_name: 'Johnson', email: 'katherine@example.com' })
  await deliver('lead-3', { first_name: 'Annie' })
  await ask(t, 'POST', '/public/v1/custom/web-lead', { headers: { 'X-Webhook-Token': 'svc_whk_wrong' }, body: {} })
}

async function registerUsers(t) {
  for (const [name, email] of [['Noor Haddad', 'noor@client.example'], ['Lena Fischer', 'lena@client.example']]) {
    const made = await ask(t, 'POST', '/public/v1/auth/register', { body: { email, password: 'a-password-to-try', name, company: 'Client & Co' } })
    assert.ok([200, 201, 403].includes(made.status), made.text)
  }
}

/** logged waits until the audit log has what filledTenant did: entries are written in batches. */
export async function logged(page) {
  await until('the calls in the audit log', () => page.evaluate(async () => {
    const answer = await (await fetch('/admin/v1/audit?limit=200')).json()
    return (answer.data?.length ?? 0) > 25
  }))
}
