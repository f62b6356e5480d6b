// GitHub. https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
//
// Secret:  the text typed into "Secret" in the webhook's settings (repository, organization or app). The content type
//          there must be application/json.
// Header:  X-Hub-Signature-256: sha256=HEX — HMAC-SHA256 of the body. X-Hub-Signature (SHA-1) never counts.
// Time:    GitHub signs no time and not the id: whoever has got hold of a delivery could send it again under another
//          id. What must not happen twice should also look at the event itself.
// Event:   providerEventId is X-GitHub-Delivery (a redelivery has the same), eventKind X-GitHub-Event (push), canonicalEvent
//          the payload.
export default function handler({ rawBody, headers, config }) {
  const given = headers['x-hub-signature-256'] ?? '';
  const signed = secrets(config).some((secret) => safeCompare(given, 'sha256=' + hmacSha256(secret, rawBody)));
  if (!signed) fail('X-Hub-Signature-256: the signature is missing or wrong');
  return { providerEventId: one(headers, 'x-github-delivery'), eventKind: one(headers, 'x-github-event'), canonicalEvent: jsonObject(rawBody) };
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
