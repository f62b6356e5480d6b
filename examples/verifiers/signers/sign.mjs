// node sign.mjs SEED COUNT NOW: writes COUNT deliveries a scheme as JSON lines, signed by the provider's own library where
// there is one. Where a library only checks signatures, they are made here and must pass it. Deliveries of the others have no
// signature yet. NOW is in seconds since 1970.
import { createHmac } from 'node:crypto';
import { strict as assert } from 'node:assert';
import { Paddle } from '@paddle/paddle-node-sdk';
import '@shopify/shopify-api/adapters/node';
import { ApiVersion, shopifyApi } from '@shopify/shopify-api';
import bolt from '@slack/bolt';
import { sign as signGitHub, verify as verifyGitHub } from '@octokit/webhooks-methods';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { Webhook as SvixWebhook } from 'svix';

const [seed, count, now] = process.argv.slice(2).map(Number);
const hmac = (secret, text, encoding) => createHmac('sha256', secret).update(text).digest(encoding);

// Paddle's library takes the time from a new Date.
let clock = now;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given) { super(...(given.length > 0 ? given : [clock * 1000])); }
  static now() { return clock * 1000; }
};
const paddle = new Paddle('no_request_is_made').webhooks;
const stripe = new Stripe('sk_test_no_request_is_made').webhooks;

// random is mulberry32: the same seed gives the same deliveries.
let state = seed >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];
const chars = (n, alphabet) => Array.from({ length: n }, () => pick(Array.from(alphabet))).join('');
const HEX = '0123456789abcdef', WORD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const bytes = (n) => Buffer.from(Array.from({ length: n }, () => below(256)));
const uuid = () => [8, 4, 4, 4, 12].map((n) => chars(n, HEX)).join('-');

const TEXTS = ['', 'plain', 'ünïcödé €', '日本語テキスト', '😀👩‍👩‍👧‍👦', '\u0000\u0001\u001f', '\u2028\u2029', '"\\/\b\f\n\r\t', '\ufeffbom', '\ufffd',
  '5\r\nhello\r\n0\r\n\r\n', '{"id":"inner"}', '</script>&amp;', '%00%zz+', 'v1,abc v1,def', '1750000000.', ' padded ', 'e\u0301', '\u{10ffff}'];
const text = () => (random() < 0.6 ? pick(TEXTS) : chars(below(60), WORD + ' äöü€'));

function value(depth) {
  const kind = below(depth > 3 ? 5 : 8);
  if (kind < 2) return text();
  if (kind === 2) return pick([0, -0.5, 1e-7, 1e21, 4503599627370497, below(1e9), random()]);
  if (kind === 3) return random() < 0.5;
  if (kind === 4) return null;
  if (kind === 5) return Array.from({ length: below(5) }, () => value(depth + 1));
  return Object.fromEntries(Array.from({ length: below(6) }, () => [text() || 'k', value(depth + 1)]));
}

// event is a random JSON object with the given members; some are big.
function event(members) {
  const e = { ...members, created: now - below(1000), livemode: false, data: { object: value(0), more: value(0) } };
  if (random() < 0.05) e.big = Array.from({ length: 500 + below(3000) }, () => ({ sku: chars(8, WORD), text: text(), n: below(1000) }));
  return e;
}

// written is an event as one of the ways in which senders write JSON.
function written(e) {
  const style = below(6);
  let s = JSON.stringify(e, null, style === 0 ? 2 : style === 1 ? '\t' : 0);
  if (style === 2) s = s.replace(/[^\x00-\x7f]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
  if (style === 3) s = s.replaceAll('/', '\\/');
  if (style === 4) s += '\r\n';
  return s;
}

const secretText = () => pick([() => chars(16 + below(40), WORD), () => 'sécret ' + chars(12, WORD + '€😀 '), () => chars(64, HEX)])();
const emit = (d) => process.stdout.write(JSON.stringify({ ...d, body: Buffer.from(d.body).toString('base64') }) + '\n');

for (let n = 0; n < count; n++) {
  const time = now + pick([0, -1, 1, -299, 299, -150, 150 - below(300)]);
  const type = pick(['invoice.paid', 'customer.created', 'push', 'message', 'a.b.c', 'größe']);
  {
    const secret = 'whsec_' + chars(32, WORD), id = 'evt_' + chars(24, WORD), e = event({ id, object: 'event', type }), body = written(e);
    emit({ scheme: 'stripe', secret, body, id, kind: type, time, event: e,
      headers: { 'stripe-signature': stripe.generateTestHeaderString({ payload: body, secret, timestamp: time }) } });
  }
  {
    const secret = secretText(), id = uuid(), kind = pick(['push', 'pull_request', 'check_run', 'ping']), e = event({ action: 'opened' }), body = written(e);
    emit({ scheme: 'github', secret, body, id, kind, time, event: e,
      headers: { 'x-github-delivery': id, 'x-github-event': kind, 'x-hub-signature-256': await signGitHub(secret, body) } });
  }
  for (const [scheme, prefix, Webhook] of [['standard', 'webhook-', StandardWebhook], ['svix', 'svix-', SvixWebhook]]) {
    const secret = 'whsec_' + bytes(24 + below(41)).toString('base64'), id = 'msg_' + chars(27, WORD);
    const typed = random() < 0.8, e = event(typed ? { type } : {}), body = written(e);
    emit({ scheme, secret, body, id, kind: typed ? type : '', time, event: e,
      headers: { [prefix + 'id']: id, [prefix + 'timestamp']: String(time), [prefix + 'signature']: new Webhook(secret).sign(id, new Date(time * 1000), body) } });
  }
  {
    const secret = 'shpss_' + chars(32, HEX), id = uuid(), kind = pick(['orders/create', 'app/uninstalled', 'customers/data_request']);
    const e = event({ id: 5_000_000_000_000 + below(1e9) });
    const body = written(e), headers = { 'x-shopify-webhook-id': id, 'x-shopify-topic': kind, 'x-shopify-hmac-sha256': hmac(secret, body, 'base64') };
    const shop = shopifyApi({ apiKey: 'k', apiSecretKey: secret, scopes: [], hostName: 'app.example', apiVersion: Object.values(ApiVersion)[0], isEmbeddedApp: false, logger: { level: 0 } });
    const sent = { ...headers, 'x-shopify-api-version': '2026-01', 'x-shopify-shop-domain': 'acme.myshopify.com' };
    assert((await shop.webhooks.validate({ rawBody: body, rawRequest: { headers: sent, url: '/', method: 'POST' }, rawResponse: {} })).valid, 'shopify');
    emit({ scheme: 'shopify', secret, body, id, kind, time, event: e, headers });
  }
  {
    const secret = 'pdl_ntfset_' + chars(26, WORD), event_id = 'evt_' + chars(26, WORD), e = event({ event_id, event_type: type }), body = written(e);
    const headers = { 'paddle-signature': `ts=${time};h1=${hmac(secret, time + ':' + body, 'hex')}` };
    clock = time;
    assert(await paddle.isSignatureValid(body, secret, headers['paddle-signature']), 'paddle');
    clock = now;
    emit({ scheme: 'paddle', secret, body, id: event_id, kind: type, time, event: e, headers });
  }
  { // Meta has no library that checks; it signs as GitHub does
    const secret = chars(32, HEX), kind = pick(['page', 'instagram', 'whatsapp_business_account']), e = event({ object: kind, entry: [{ id: '1', time }] }), body = written(e);
    const headers = { 'x-hub-signature-256': 'sha256=' + hmac(secret, body, 'hex') };
    assert(await verifyGitHub(secret, body, headers['x-hub-signature-256']), 'meta');
    emit({ scheme: 'meta', secret: secret + ':' + chars(20, WORD + ':'), body, id: '', kind, time, event: e, headers });
  }
  {
    const id = pick(['evt_' + chars(10, WORD), below(2 ** 40), undefined, '', null, 1.5, 2 ** 60]);
    const known = (typeof id === 'string' && id !== '') || Number.isSafeInteger(id), typed = random() < 0.5;
    const e = event(typed ? { id, type } : { id }), body = written(e);
    emit({ scheme: 'simple', secret: secretText(), body, id: known ? String(id) : '', kind: typed ? type : '', time, event: JSON.parse(body), headers: {} });
  }
  const { type: content, ...sent } = slack();
  const secret = chars(32, HEX);
  const headers = { 'content-type': content, 'x-slack-request-timestamp': String(time), 'x-slack-signature': 'v0=' + hmac(secret, `v0:${time}:${sent.body}`, 'hex') };
  bolt.verifySlackRequest({ signingSecret: secret, body: sent.body, headers, nowMilliseconds: now * 1000 }); // throws where it is wrong
  emit({ scheme: 'slack', secret, time, headers, ...sent });
}

// slack is one of the four kinds of body that Slack sends; an id that is not in the body comes from the signature.
function slack() {
  const event_id = 'Ev' + chars(9, WORD);
  const json = (e, id, kind) => ({ type: 'application/json', body: written(e), event: e, id, kind });
  const form = (fields, e, kind) => ({ type: 'application/x-www-form-urlencoded', body: new URLSearchParams(fields).toString(), event: e, id: '', kind });
  switch (below(4)) {
    case 0: return json(event({ type: 'event_callback', event_id, event: { type: 'app_mention', text: text() } }), event_id, 'app_mention');
    case 1: {
      const challenge = chars(40, WORD);
      return { ...json({ token: chars(24, WORD), challenge, type: 'url_verification' }, '', ''), reply: { status: 200, contentType: 'text/plain', body: challenge } };
    }
    case 2: {
      const fields = { token: chars(24, WORD), team_id: 'T0001', command: '/weather', text: text(), response_url: 'https://hooks.example/commands/1/2', trigger_id: chars(20, HEX) };
      return form(fields, fields, '/weather');
    }
    default: {
      const e = event({ type: 'block_actions', trigger_id: chars(20, HEX) });
      return form({ payload: JSON.stringify(e) }, e, 'block_actions');
    }
  }
}
