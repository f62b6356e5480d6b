// Paddle Billing. https://developer.paddle.com/webhooks/signature-verification
//
// Secret:  the notification destination's secret key, pdl_ntfset_…, used as it is.
// Header:  Paddle-Signature: ts=TIME;h1=HEX — HMAC-SHA256 of "TIME:body"; while a secret is replaced there are several h1,
//          and any counts.
// Time:    signed, and must be within 300 seconds of now. (Paddle's own libraries allow 5.)
// Event:   providerEventId is event_id, eventKind event_type (transaction.completed), canonicalEvent the body.
export default function handler({ rawBody, headers, config }) {
  const { time, signatures } = parse(headers['paddle-signature'] ?? '');
  if (!checkTimestampFresh(time)) fail('Paddle-Signature: its ts is missing, or not within 300 seconds of now');
  const expected = secrets(config).map((secret) => hmacSha256(secret, time + ':' + rawBody));
  const signed = signatures.some((signature) => expected.some((hex) => safeCompare(signature, hex)));
  if (!signed) fail('Paddle-Signature: the signature is missing or wrong');
  const event = jsonObject(rawBody);
  if (typeof event.event_id !== 'string' || event.event_id === '') fail('the event has no event_id');
  return { providerEventId: event.event_id, eventKind: typeof event.event_type === 'string' ? event.event_type : '', canonicalEvent: event };
}

// parse reads the header's list of name=value; one that is none has no time stamp.
function parse(header) {
  const times = [], signatures = [];
  for (const part of header.split(';')) {
    const [, name, value] = /^(\w+)=([^=;,\s]+)$/.exec(part) ?? [];
    if (name === undefined) return { time: '', signatures };
    if (name === 'ts') times.push(value);
    if (name === 'h1') signatures.push(value);
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
