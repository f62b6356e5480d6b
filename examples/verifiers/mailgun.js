// Mailgun. https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
//
// Secret:  the "HTTP webhook signing key" (Settings, API Security), used as it is.
// Body:    {"signature": {"timestamp", "token", "signature"}, "event-data": {…}}, of at most 256 KiB; the signature is the HEX of HMAC-SHA256 of
//          timestamp and token. The event itself is not signed: keep the address on HTTPS.
// Time:    signed, and must be within 9 hours of now: Mailgun sends for 8 hours what was not taken.
// Event:   providerEventId is the token, so that a signature counts once and nobody can put another event beside it. What must
//          not happen twice should also look at event-data.id. eventKind is event-data.event (delivered), canonicalEvent event-data.
export default function handler({ rawBody, config }) {
  const { signature, 'event-data': event } = jsonObject(rawBody);
  const { timestamp, token, signature: given } = signature ?? {};
  if (!checkTimestampFresh(timestamp, 9 * 3600)) fail('signature.timestamp is missing, or not within 9 hours of now');
  if (typeof token !== 'string' || token === '') fail('signature.token is missing');
  if (!secrets(config).some((secret) => safeCompare(given, hmacSha256(secret, timestamp + token)))) fail('signature.signature is missing or wrong');
  if (typeof event !== 'object' || event === null || Array.isArray(event)) fail('event-data is not an object');
  return { providerEventId: token, eventKind: typeof event.event === 'string' ? event.event : '', canonicalEvent: event };
}

// secrets are the current one and, while it is being replaced, the previous one.
function secrets(config) {
  const [current, previous] = config.webhook_secrets;
  if (!current) fail('the endpoint has no webhook secret');
  return previous ? [current, previous] : [current];
}

// jsonObject reads the body, whose size is bounded because the signature in it is not known to be right.
function jsonObject(body) {
  if (body.length > 256 << 10) fail('the body is larger than 256 KiB');
  let value;
  try { value = body.isWellFormed() ? JSON.parse(body) : null; } catch { value = null; }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail('the body is not a JSON object');
  return value;
}
