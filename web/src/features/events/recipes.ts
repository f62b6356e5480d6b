import discord from '../../../../examples/verifiers/discord.js?raw'
import github from '../../../../examples/verifiers/github.js?raw'
import mailgun from '../../../../examples/verifiers/mailgun.js?raw'
import meta from '../../../../examples/verifiers/meta.js?raw'
import paddle from '../../../../examples/verifiers/paddle.js?raw'
import sendgrid from '../../../../examples/verifiers/sendgrid.js?raw'
import shopify from '../../../../examples/verifiers/shopify.js?raw'
import simple from '../../../../examples/verifiers/simple.js?raw'
import slack from '../../../../examples/verifiers/slack.js?raw'
import standard from '../../../../examples/verifiers/standard-webhooks.js?raw'
import stripe from '../../../../examples/verifiers/stripe.js?raw'
import twilio from '../../../../examples/verifiers/twilio.js?raw'

/** How a provider signs: a verifier that is ready to use, and a delivery as the provider would send it. */
export interface Recipe {
  key: string
  label: string
  source: string
  /** secret says where the provider shows it; like is one of its form. */
  secret: string
  like: string
  body: string
  /** sign returns what a provider with this secret sends to an address now. */
  sign: (secret: string, body: string, address: string) => Promise<Signed>
}

/** Signed are the headers of a delivery. body is there where the signature stands in it, and secret where it is a public key: then a new pair of keys signs. */
export interface Signed { headers: [name: string, value: string][]; body?: string; secret?: string }

const utf8 = new TextEncoder()

async function hmac(key: Uint8Array<ArrayBuffer>, data: string, hash: 'SHA-256' | 'SHA-1' = 'SHA-256'): Promise<Uint8Array> {
  const made = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash }, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', made, utf8.encode(data)))
}

const hex = (bytes: Uint8Array) => [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('')
const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes))
const now = () => String(Math.floor(Date.now() / 1000))
const id = () => crypto.randomUUID()

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)) } catch { throw new Error('the secret is no base64: expected whsec_ and base64') }
}

/** der writes an ECDSA signature, two numbers of 32 bytes, in ASN.1. */
export function der(raw: Uint8Array): Uint8Array {
  const number = (bytes: Uint8Array) => {
    let from = 0
    while (from < bytes.length - 1 && bytes[from] === 0) from++
    const digits = [...((bytes[from] ?? 0) > 127 ? [0] : []), ...bytes.slice(from)]
    return [2, digits.length, ...digits]
  }
  const both = [...number(raw.slice(0, 32)), ...number(raw.slice(32))]
  return Uint8Array.from([0x30, both.length, ...both])
}

/** maySign says whether this browser can make a signature here: only over TLS or on this machine. */
export const maySign = (): boolean => typeof crypto !== 'undefined' && 'subtle' in crypto

export const recipes: readonly Recipe[] = [
  {
    key: 'stripe', label: 'Stripe', source: stripe, secret: 'Workbench, Webhooks, the destination, Signing secret: whsec_…, used as it is', like: 'whsec_0123456789abcdef0123456789abcdef',
    body: '{"id": "evt_1Sample", "object": "event", "type": "invoice.paid", "data": {"object": {"id": "in_1", "amount_paid": 4200}}}',
    sign: async (secret, body) => { const t = now(); return { headers: [['Stripe-Signature', `t=${t},v1=${hex(await hmac(utf8.encode(secret), `${t}.${body}`))}`]] } },
  },
  {
    key: 'github', label: 'GitHub', source: github, secret: 'the text you chose when you made the webhook', like: 'a secret of at least 16 characters',
    body: '{"action": "opened", "number": 1, "repository": {"full_name": "acme/site"}}',
    sign: async (secret, body) => ({ headers: [['X-GitHub-Event', 'pull_request'], ['X-GitHub-Delivery', id()], ['X-Hub-Signature-256', `sha256=${hex(await hmac(utf8.encode(secret), body))}`]] }),
  },
  {
    key: 'slack', label: 'Slack', source: slack, secret: 'the app’s Basic Information, Signing Secret', like: '0123456789abcdef0123456789abcdef',
    body: '{"type": "event_callback", "event_id": "Ev0SAMPLE", "event": {"type": "app_mention", "text": "hello"}}',
    sign: async (secret, body) => { const t = now(); return { headers: [['X-Slack-Request-Timestamp', t], ['X-Slack-Signature', `v0=${hex(await hmac(utf8.encode(secret), `v0:${t}:${body}`))}`]] } },
  },
  {
    key: 'shopify', label: 'Shopify', source: shopify, secret: 'the app’s client secret', like: 'shpss_0123456789abcdef0123456789abcdef',
    body: '{"id": 820982911946154508, "email": "jon@example.com", "total_price": "129.90"}',
    sign: async (secret, body) => ({ headers: [['X-Shopify-Topic', 'orders/paid'], ['X-Shopify-Webhook-Id', id()], ['X-Shopify-Hmac-Sha256', base64(await hmac(utf8.encode(secret), body))]] }),
  },
  {
    key: 'standard', label: 'Standard Webhooks', source: standard, secret: 'whsec_ and base64; Svix and many others', like: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
    body: '{"type": "contact.created", "timestamp": "2026-11-22T10:00:00Z", "data": {"id": "1f81eb52"}}',
    sign: async (secret, body) => {
      const t = now()
      const message = `msg_${id().replaceAll('-', '')}`
      return { headers: [['webhook-id', message], ['webhook-timestamp', t], ['webhook-signature', `v1,${base64(await hmac(fromBase64(secret.replace(/^whsec_/, '')), `${message}.${t}.${body}`))}`]] }
    },
  },
  {
    key: 'twilio', label: 'Twilio', source: twilio, secret: 'Console, Account, API keys & tokens: the Auth Token', like: '0123456789abcdef0123456789abcdef',
    body: 'AccountSid=AC0&Body=hello&From=%2B14158675309&MessageSid=SM0Sample&SmsStatus=received&To=%2B18005551212',
    sign: async (secret, body, address) => {
      const fields = [...new URLSearchParams(body)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => name + value).join('')
      return { headers: [['X-Twilio-Signature', base64(await hmac(utf8.encode(secret), address + fields, 'SHA-1'))]] }
    },
  },
  {
    key: 'discord', label: 'Discord', source: discord, secret: 'Developer Portal, the app, General Information: the Public Key', like: '',
    body: '{"id": "1130000000000000001", "application_id": "1", "type": 2, "token": "sample", "version": 1, "data": {"name": "order", "type": 1}}',
    sign: async (_, body) => {
      const t = now()
      const pair = await crypto.subtle.generateKey({ name: 'Ed25519' }, true, ['sign', 'verify'])
      const signature = await crypto.subtle.sign('Ed25519', pair.privateKey, utf8.encode(t + body))
      return { secret: hex(new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey))), headers: [['X-Signature-Timestamp', t], ['X-Signature-Ed25519', hex(new Uint8Array(signature))]] }
    },
  },
  {
    key: 'meta', label: 'Meta', source: meta, secret: 'the app secret, a colon, and the verify token that you chose', like: '0123456789abcdef0123456789abcdef:a-token-of-your-own',
    body: '{"object": "whatsapp_business_account", "entry": [{"id": "0", "changes": [{"field": "messages", "value": {}}]}]}',
    sign: async (secret, body) => ({ headers: [['X-Hub-Signature-256', `sha256=${hex(await hmac(utf8.encode(secret.split(':')[0] ?? ''), body))}`]] }),
  },
  {
    key: 'paddle', label: 'Paddle', source: paddle, secret: 'the notification destination’s secret key', like: 'pdl_ntfset_01hsample0123456789abcdef',
    body: '{"event_id": "evt_01hsample", "event_type": "transaction.completed", "occurred_at": "2026-11-22T10:00:00Z", "data": {"id": "txn_01h"}}',
    sign: async (secret, body) => { const t = now(); return { headers: [['Paddle-Signature', `ts=${t};h1=${hex(await hmac(utf8.encode(secret), `${t}:${body}`))}`]] } },
  },
  {
    key: 'mailgun', label: 'Mailgun', source: mailgun, secret: 'Settings, API Security: the HTTP webhook signing key', like: 'key-0123456789abcdef0123456789abcdef',
    body: '{"signature": {}, "event-data": {"event": "delivered", "id": "sample", "recipient": "jon@example.com"}}',
    sign: async (secret, body) => {
      const timestamp = now(), token = hex(crypto.getRandomValues(new Uint8Array(25)))
      const signature = { timestamp, token, signature: hex(await hmac(utf8.encode(secret), timestamp + token)) }
      return { headers: [], body: JSON.stringify({ ...(JSON.parse(body) as object), signature }) }
    },
  },
  {
    key: 'sendgrid', label: 'SendGrid', source: sendgrid, secret: 'Settings, Mail Settings, Event Webhooks: the Verification Key', like: '',
    body: '[{"email": "jon@example.com", "event": "delivered", "sg_event_id": "sample", "timestamp": 1750000000}]',
    sign: async (_, body) => {
      const t = now()
      const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
      const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, pair.privateKey, utf8.encode(t + body))
      return {
        secret: base64(new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey))),
        headers: [['X-Twilio-Email-Event-Webhook-Timestamp', t], ['X-Twilio-Email-Event-Webhook-Signature', base64(der(new Uint8Array(signature)))]],
      }
    },
  },
  {
    key: 'simple', label: 'A sender of your own', source: simple, secret: 'the text you chose', like: 'a secret of at least 16 characters',
    body: '{"id": "1", "type": "order.paid", "total": 129.9}',
    sign: async (secret, body) => ({ headers: [['X-Signature', hex(await hmac(utf8.encode(secret), body))]] }),
  },
]

/** headersOf reads headers as they are pasted: one a line, name: value. wrong is the number of the first line that is none. */
export function headersOf(text: string): { headers: { name: string; value: string }[]; wrong: number } {
  const headers: { name: string; value: string }[] = []
  let wrong = 0
  text.split('\n').forEach((line, i) => {
    if (line.trim() === '') return
    const at = line.indexOf(':')
    const name = at > 0 ? line.slice(0, at).trim() : ''
    if (name === '' || /\s/.test(name)) { wrong ||= i + 1; return }
    headers.push({ name, value: line.slice(at + 1).trim() })
  })
  return { headers, wrong }
}
