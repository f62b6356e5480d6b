// Stripe. https://docs.stripe.com/webhooks/signature
//
// Secret:  Dashboard, Workbench, Webhooks, the destination, "Signing secret": whsec_…, used as it is, prefix included.
// Header:  Stripe-Signature: t=1750000000,v1=HEX,v1=HEX — HMAC-SHA256 of "t.body", one v1 for each secret that is
//          valid at Stripe; any of them counts. Other schemes (v0) never count, a second t is refused.
// Time:    t is signed, and must be within 300 seconds of now.
// Event:   providerEventId is the event's id (evt_…), eventKind its type (invoice.paid), canonicalEvent the event.
export default function handler({ rawBody, headers, config }) {
  const { time, signatures } = parse(headers['stripe-signature'] ?? '');
  if (!checkTimestampFresh(time)) fail('Stripe-Signature: the time stamp is missing, or not within 300 seconds of now');
  const signed = secrets(config).some((secret) => {
    const expected = hmacSha256(secret, time + '.' + rawBody);
    return signatures.some((signature) => safeCompare(signature, expected));
  });
  if (!signed) fail('Stripe-Signature: no v1 signature is right');
  const event = jsonObject(rawBody);
  return { providerEventId: text(event.id, 'id'), eventKind: text(event.type, 'type'), canonicalEvent: event };
}

// parse reads the header's list of name=value.
function parse(header) {
  const times = [], signatures = [];
  for (const part of header.split(',')) {
    const [, name, value] = /^\s*(t|v1)=(\S*)\s*$/.exec(part) ?? [];
    if (name === 't') times.push(value);
    if (name === 'v1') signatures.push(value);
  }
  return { time: times.length === 1 ? times[0] : '', signatures };
}

// secrets are the current one and, while it is being replaced, the previous one.
function secrets(config) {
  const [current, previous] = config.webhook_secrets;
  if (!current) fail('the endpoint has no webhook secret');
  return previous ? [current, previous] : [current];
}

// jsonObject reads the body, whose signature is right.
function jsonObject(body) {
  let value;
  try { value = body.isWellFormed() ? JSON.parse(body) : null; } catch { value = null; }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail('the body is not a JSON object');
  return value;
}

function text(value, name) {
  if (typeof value !== 'string' || value === '') fail('the event has no ' + name);
  return value;
}
