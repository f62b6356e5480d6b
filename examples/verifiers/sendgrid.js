// SendGrid's Event Webhook. https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
//
// Secret:  the webhook's "Verification Key" (Settings, Mail Settings, Event Webhooks, Signature Verification): a public key in base64.
// Headers: X-Twilio-Email-Event-Webhook-Signature: BASE64 — ECDSA of TIME and the body, TIME being
//          X-Twilio-Email-Event-Webhook-Timestamp.
// Time:    signed, and must be within 25 hours of now: SendGrid sends for a day what was not taken. A delivery that is sent again
//          has the same id, and does nothing.
// Event:   SendGrid sends a list of events: canonicalEvent is {events: [...]}, providerEventId a hash of the body, eventKind the
//          kind of the events (delivered) where all have one, else "".
export default function handler({ rawBody, headers, config }) {
  const time = headers['x-twilio-email-event-webhook-timestamp'] ?? '';
  const given = headers['x-twilio-email-event-webhook-signature'] ?? '';
  if (!checkTimestampFresh(time, 25 * 3600)) fail('X-Twilio-Email-Event-Webhook-Timestamp is missing, or not within 25 hours of now');
  if (!keys(config).some((key) => ecdsaP256Verify(key, time + rawBody, given))) fail('X-Twilio-Email-Event-Webhook-Signature: the signature is missing or wrong');
  const events = jsonList(rawBody);
  const kinds = [...new Set(events.map((event) => event?.event))];
  return { providerEventId: hmacSha256('sendgrid', rawBody), eventKind: kinds.length === 1 && typeof kinds[0] === 'string' ? kinds[0] : '', canonicalEvent: { events } };
}

// keys are the current one and, while it is being replaced, the previous one.
function keys(config) {
  const [current, previous] = config.webhook_secrets;
  if (!current) fail('the endpoint has no webhook secret');
  return previous ? [current, previous] : [current];
}

// jsonList reads the body, whose signature is right.
function jsonList(body) {
  let value;
  try { value = body.isWellFormed() ? JSON.parse(body) : null; } catch { value = null; }
  if (!Array.isArray(value)) fail('the body is not a JSON list');
  return value;
}
