// Meta: Messenger, Instagram, WhatsApp, lead ads. https://developers.facebook.com/docs/graph-api/webhooks/getting-started
//
// Secret:  two in one, "APP_SECRET:VERIFY_TOKEN": the app secret (App Dashboard, App settings, Basic) and, after a colon, the
//          text that you type into "Verify token" where the callback address is entered.
// Headers: X-Hub-Signature-256: sha256=HEX — HMAC-SHA256 of the body by the app secret.
// GET:     when the address is entered, Meta asks it with hub.mode=subscribe, hub.verify_token and hub.challenge, and wants
//          the challenge back: the endpoint needs allow_get: true.
// Time:    Meta signs no time. A delivery that is sent again has the same signature, and does nothing.
// Event:   Meta sends no id: providerEventId is the signature's HEX, so that two equal bodies are one event. eventKind is the
//          body's object (page, instagram, whatsapp_business_account), canonicalEvent the body, whose entry is a list of
//          what happened.
export default function handler({ rawBody, headers, config, method, query }) {
  const known = secrets(config);
  if (method === 'GET') {
    const asked = query['hub.mode'] === 'subscribe' && typeof query['hub.challenge'] === 'string';
    if (!asked || !known.some(({ token }) => safeCompare(query['hub.verify_token'], token))) fail('hub.verify_token is missing or wrong');
    return { reply: { status: 200, contentType: 'text/plain', body: query['hub.challenge'] } };
  }
  const given = headers['x-hub-signature-256'] ?? '';
  const expected = known.map(({ app }) => hmacSha256(app, rawBody)).find((hex) => safeCompare(given, 'sha256=' + hex));
  if (expected === undefined) fail('X-Hub-Signature-256: the signature is missing or wrong');
  const event = jsonObject(rawBody);
  return { providerEventId: expected, eventKind: typeof event.object === 'string' ? event.object : '', canonicalEvent: event };
}

// secrets are the current pair and, while it is being replaced, the previous one.
function secrets(config) {
  const [current, previous] = config.webhook_secrets;
  if (!current) fail('the endpoint has no webhook secret');
  return (previous ? [current, previous] : [current]).map((pair) => {
    const at = pair.indexOf(':');
    if (at < 1 || at === pair.length - 1) fail('the webhook secret is not APP_SECRET:VERIFY_TOKEN');
    return { app: pair.slice(0, at), token: pair.slice(at + 1) };
  });
}

// jsonObject reads the body, whose signature is right.
function jsonObject(body) {
  let value;
  try { value = body.isWellFormed() ? JSON.parse(body) : null; } catch { value = null; }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail('the body is not a JSON object');
  return value;
}
