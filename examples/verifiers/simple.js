// The simple scheme, for senders of your own:
//
//   signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" -hex | sed 's/.* //')
//   curl -H "X-Signature: $signature" -H 'Content-Type: application/json' --data-raw "$body" …
//
// Secret:  any text that both sides know, 16 characters or more (openssl rand -hex 32), used as it is.
// Header:  X-Signature: HEX — HMAC-SHA256 of the body, in lower case.
// Time:    none is signed. A delivery that is sent again has the same id, and does nothing; let every body have an id.
// Event:   providerEventId is the body's id, a text or a whole number; without one it is the signature, so that two equal bodies
//          are one event. eventKind is the body's type ("" without one), canonicalEvent the body, a JSON object.
export default function handler({ rawBody, headers, config }) {
  const given = headers['x-signature'] ?? '';
  const expected = secrets(config)
    .map((secret) => hmacSha256(secret, rawBody))
    .find((hex) => safeCompare(given, hex));
  if (expected === undefined) fail('X-Signature: the signature is missing or wrong');
  const event = jsonObject(rawBody);
  const id = Number.isSafeInteger(event.id) ? String(event.id) : text(event.id);
  return { providerEventId: id || expected, eventKind: text(event.type), canonicalEvent: event };
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

const text = (value) => (typeof value === 'string' ? value : '');
