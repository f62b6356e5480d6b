// Twilio: messages, calls and their status. https://www.twilio.com/docs/usage/webhooks/webhooks-security
//
// Secret:  the account's (or subaccount's) primary Auth Token (Console, Account, API keys & tokens), used as it is.
// Header:  X-Twilio-Signature: BASE64 — HMAC-SHA1 of the address, followed by the name and value of each field of the form, in the
//          order of the names. The address is this endpoint's under the tenant's base_url with the query as it was sent; enter
//          exactly that at Twilio. With and without port 443, both count: which one is signed depends on the product.
// Time:    Twilio signs no time and not the id: whoever has got hold of a delivery could send it again under another
//          id. What must not happen twice should also look at the event itself (MessageSid, CallSid).
// Event:   a form of at most 1,000 fields and 64 KiB; an empty one, and JSON, which some products send and sign by bodySHA256 in
//          the query, are rejected. providerEventId is I-Twilio-Idempotency-Token (a retry has the
//          same), else the signature; eventKind MessageStatus, SmsStatus or CallStatus; canonicalEvent an object of the fields.
export default function handler({ rawBody, headers, config, query, url }) {
  const given = headers['x-twilio-signature'] ?? '';
  if (!/^[A-Za-z0-9+/]{27}=$/.test(given)) fail('X-Twilio-Signature: the signature is missing or wrong');
  if (query.bodySHA256 !== undefined) fail('bodySHA256: the body is not a form');
  const fields = form(rawBody);
  const text = Object.keys(fields).sort().map((name) => [fields[name]].flat().map((value) => name + value).join('')).join('');
  const signed = secrets(config).some((secret) =>
    addresses(url).some((address) => safeCompare(given, hmacSha1(secret, address + text, 'base64'))));
  if (!signed) fail('X-Twilio-Signature: the signature is missing or wrong');
  const id = headers['i-twilio-idempotency-token'] ?? given;
  if (!/^[^\s,]+$/.test(id)) fail('i-twilio-idempotency-token: expected one value');
  const kind = fields.MessageStatus ?? fields.SmsStatus ?? fields.CallStatus;
  return { providerEventId: id, eventKind: typeof kind === 'string' ? kind : '', canonicalEvent: fields };
}

// addresses are the endpoint's with and without the port of HTTPS.
const addresses = (url) => [url, url.replace(/^https:\/\/[^/:?]+(?=[/?])/, '$&:443'), url.replace(/^(https:\/\/[^/:?]+):443(?=[/?])/, '$1')];

// form reads a form, whose size is bounded because it is read before the signature is known to be right. A name that occurs several times has the sorted list of its values, each once, as Twilio signs it.
function form(body) {
  if (body === '') fail('the form is empty');
  if (body.length > 64 << 10) fail('the form is larger than 64 KiB');
  const parts = body.split('&', 1001);
  if (parts.length > 1000) fail('the form has more than 1,000 fields');
  const plain = (s) => {
    try { return decodeURIComponent(s.replaceAll('+', ' ')); } catch { fail('the form is not UTF-8'); }
  };
  if (!body.isWellFormed()) fail('the body is not UTF-8');
  const fields = new Map();
  for (const part of parts) {
    if (part === '') continue;
    const at = part.indexOf('=');
    if (at < 1) fail('the body is not a form');
    const name = plain(part.slice(0, at));
    if (!fields.has(name)) fields.set(name, []);
    fields.get(name).push(plain(part.slice(at + 1)));
  }
  return Object.fromEntries([...fields].map(([name, values]) => [name, values.length === 1 ? values[0] : [...new Set(values)].sort()]));
}

// secrets are the current one and, while it is being replaced, the previous one.
function secrets(config) {
  const [current, previous] = config.webhook_secrets;
  if (!current) fail('the endpoint has no webhook secret');
  return previous ? [current, previous] : [current];
}
