import github from '../../../../examples/verifiers/github.js?raw'
import shopify from '../../../../examples/verifiers/shopify.js?raw'
import simple from '../../../../examples/verifiers/simple.js?raw'
import slack from '../../../../examples/verifiers/slack.js?raw'
import standard from '../../../../examples/verifiers/standard-webhooks.js?raw'
import stripe from '../../../../examples/verifiers/stripe.js?raw'

/** How a provider signs: a verifier that is ready to use, and a delivery as the provider would send it. */
export interface Recipe {
  key: string
  label: string
  source: string
  /** secret says where the provider shows it; like is one of its form. */
  secret: string
  like: string
  body: string
  /** sign returns the headers that a provider with this secret sends with a body now. */
  sign: (secret: string, body: string) => Promise<[name: string, value: string][]>
}

const utf8 = new TextEncoder()

async function hmac(key: Uint8Array<ArrayBuffer>, data: string): Promise<Uint8Array> {
  const made = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', made, utf8.encode(data)))
}

const hex = (bytes: Uint8Array) => [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('')
const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes))
const now = () => String(Math.floor(Date.now() / 1000))
const id = () => crypto.randomUUID()

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)) } catch { throw new Error('the secret is no base64: expected whsec_ and base64') }
}

/** maySign says whether this browser can make a signature here: only over TLS or on this machine. */
export const maySign = (): boolean => typeof crypto !== 'undefined' && 'subtle' in crypto

export const recipes: readonly Recipe[] = [
  {
    key: 'stripe', label: 'Stripe', source: stripe, secret: 'Workbench, Webhooks, the destination, Signing secret: whsec_…, used as it is', like: 'whsec_0123456789abcdef0123456789abcdef',
    body: '{"id": "evt_1Sample", "object": "event", "type": "invoice.paid", "data": {"object": {"id": "in_1", "amount_paid": 4200}}}',
    sign: async (secret, body) => { const t = now(); return [['Stripe-Signature', `t=${t},v1=${hex(await hmac(utf8.encode(secret), `${t}.${body}`))}`]] },
  },
  {
    key: 'github', label: 'GitHub', source: github, secret: 'the text you chose when you made the webhook', like: 'a secret of at least 16 characters',
    body: '{"action": "opened", "number": 1, "repository": {"full_name": "acme/site"}}',
    sign: async (secret, body) => [['X-GitHub-Event', 'pull_request'], ['X-GitHub-Delivery', id()], ['X-Hub-Signature-256', `sha256=${hex(await hmac(utf8.encode(secret), body))}`]],
  },
  {
    key: 'slack', label: 'Slack', source: slack, secret: 'the app’s Basic Information, Signing Secret', like: '0123456789abcdef0123456789abcdef',
    body: '{"type": "event_callback", "event_id": "Ev0SAMPLE", "event": {"type": "app_mention", "text": "hello"}}',
    sign: async (secret, body) => { const t = now(); return [['X-Slack-Request-Timestamp', t], ['X-Slack-Signature', `v0=${hex(await hmac(utf8.encode(secret), `v0:${t}:${body}`))}`]] },
  },
  {
    key: 'shopify', label: 'Shopify', source: shopify, secret: 'the app’s client secret', like: 'shpss_0123456789abcdef0123456789abcdef',
    body: '{"id": 820982911946154508, "email": "jon@example.com", "total_price": "129.90"}',
    sign: async (secret, body) => [['X-Shopify-Topic', 'orders/paid'], ['X-Shopify-Webhook-Id', id()], ['X-Shopify-Hmac-Sha256', base64(await hmac(utf8.encode(secret), body))]],
  },
  {
    key: 'standard', label: 'Standard Webhooks', source: standard, secret: 'whsec_ and base64; Svix and many others', like: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
    body: '{"type": "contact.created", "timestamp": "2026-11-22T10:00:00Z", "data": {"id": "1f81eb52"}}',
    sign: async (secret, body) => {
      const t = now()
      const message = `msg_${id().replaceAll('-', '')}`
      return [['webhook-id', message], ['webhook-timestamp', t], ['webhook-signature', `v1,${base64(await hmac(fromBase64(secret.replace(/^whsec_/, '')), `${message}.${t}.${body}`))}`]]
    },
  },
  {
    key: 'simple', label: 'A sender of your own', source: simple, secret: 'the text you chose', like: 'a secret of at least 16 characters',
    body: '{"id": "1", "type": "order.paid", "total": 129.9}',
    sign: async (secret, body) => [['X-Signature', hex(await hmac(utf8.encode(secret), body))]],
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
