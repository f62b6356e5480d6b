// Standard Webhooks, and Svix, whose headers are named svix-* instead of webhook-*. https://www.standardwebhooks.com
//
// Secret:  whsec_ and the base64 of the key, as the provider shows it (for Svix: the endpoint's "Signing Secret"). The prefix
//          may be missing; a secret that is not base64 rejects every delivery.
// Headers: webhook-id, webhook-timestamp, webhook-signature: "v1,BASE64 v1,BASE64" — HMAC-SHA256 of "id.timestamp.body",
//          one for each key in use; any v1 counts, others (v1a) never. With both kinds of names, webhook-* counts.
// Time:    signed, and must be within 300 seconds of now.
// Event:   providerEventId is the id header, eventKind the body's type ("" without one), canonicalEvent the body.
export default function handler({ rawBody, headers, config }) {
  const kind = headers['webhook-signature'] === undefined ? 'svix-' : 'webhook-';
  const id = headers[kind + 'id'] ?? '';
  const time = headers[kind + 'timestamp'] ?? '';
  const given = (headers[kind + 'signature'] ?? '').split(/,? /); // a repeated header, joined by ", ", is a longer list
  if (id === '') fail(kind + 'id is missing');
  if (!checkTimestampFresh(time)) fail(kind + 'timestamp is missing, or not within 300 seconds of now');
  const signed = secrets(config).some((secret) => {
    const expected = 'v1,' + hmacSha256(key(secret), id + '.' + time + '.' + rawBody, 'base64');
    return given.some((signature) => safeCompare(signature, expected));
  });
  if (!signed) fail(kind + 'signature: no v1 signature is right');
  const event = jsonObject(rawBody);
  return { providerEventId: id, eventKind: typeof event.type === 'string' ? event.type : '', canonicalEvent: event };
}

// key is the bytes that a secret stands for; a key of no bytes is refused by hmacSha256.
function key(secret) {
  return Uint8Array.fromBase64(secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : secret);
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
