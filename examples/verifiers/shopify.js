// Shopify. https://shopify.dev/docs/apps/build/webhooks/subscribe/https
//
// Secret:  an app's client secret (Dev Dashboard, the app, Settings); for webhooks made in a shop's admin, the key shown
//          under Settings, Notifications, Webhooks. Used as it is. A rotated client secret: see "Rotating" in README.md.
// Header:  X-Shopify-Hmac-Sha256: BASE64 — HMAC-SHA256 of the body.
// Time:    Shopify signs no time and not the id: whoever has got hold of a delivery could send it again under another
//          id. What must not happen twice should also look at the event itself.
// Event:   providerEventId is X-Shopify-Webhook-Id (a retry has the same), eventKind X-Shopify-Topic (orders/create),
//          canonicalEvent the payload.
export default function handler({ rawBody, headers, config }) {
  const given = headers['x-shopify-hmac-sha256'] ?? '';
  const signed = secrets(config).some((secret) => safeCompare(given, hmacSha256(secret, rawBody, 'base64')));
  if (!signed) fail('X-Shopify-Hmac-Sha256: the signature is missing or wrong');
  return { providerEventId: one(headers, 'x-shopify-webhook-id'), eventKind: one(headers, 'x-shopify-topic'), canonicalEvent: jsonObject(rawBody) };
}

// one is a header that was sent, and sent once: repeats are joined by ", ".
function one(headers, name) {
  const value = headers[name] ?? '';
  if (!/^[^\s,]+$/.test(value)) fail(name + ': expected one value');
  return value;
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
