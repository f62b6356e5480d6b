// Discord: interactions and webhook events. https://docs.discord.com/developers/interactions/overview
//
// Secret:  the application's "Public Key" (Developer Portal, the app, General Information): 64 hexadecimal digits.
// Headers: X-Signature-Ed25519: HEX — Ed25519 of TIME and the body, TIME being X-Signature-Timestamp.
// Time:    signed, and must be within 300 seconds of now.
// PING:    when the address is saved, and now and then, Discord sends a PING, which is answered: {"type": 1} at the Interactions
//          Endpoint URL, 204 at the Webhook Events URL. It also sends wrong signatures, and wants 401.
// Event:   of an interaction, providerEventId is its id, eventKind the command's name or the component's custom_id, and
//          canonicalEvent the body. Webhook events have no id: it is a hash of the event, eventKind is the event's type
//          (APPLICATION_AUTHORIZED).
export default function handler({ rawBody, headers, config }) {
  const time = headers['x-signature-timestamp'] ?? '';
  const given = headers['x-signature-ed25519'] ?? '';
  if (!checkTimestampFresh(time)) fail('X-Signature-Timestamp is missing, or not within 300 seconds of now');
  const signed = keys(config).some((key) => /^[0-9a-f]{128}$/.test(given) && ed25519Verify(key, time + rawBody, given));
  if (!signed) fail('X-Signature-Ed25519: the signature is missing or wrong');
  const event = jsonObject(rawBody);
  if (event.type === 0) return { reply: { status: 204 } };
  if (event.event !== undefined) {
    return { providerEventId: hmacSha256('discord', JSON.stringify(event)), eventKind: text(event.event?.type), canonicalEvent: event };
  }
  if (event.type === 1) return { reply: { status: 200, contentType: 'application/json', body: { type: 1 } } };
  if (text(event.id) === '') fail('the interaction has no id');
  return { providerEventId: event.id, eventKind: text(event.data?.name) || text(event.data?.custom_id), canonicalEvent: event };
}

// keys are the current one and, while it is being replaced, the previous one.
function keys(config) {
  const [current, previous] = config.webhook_secrets;
  if (!current) fail('the endpoint has no webhook secret');
  const all = previous ? [current, previous] : [current];
  if (!all.every((key) => /^[0-9a-fA-F]{64}$/.test(key))) fail('the webhook secret is not a public key of 64 hexadecimal digits');
  return all;
}

// jsonObject reads the body, whose signature is right.
function jsonObject(body) {
  let value;
  try { value = body.isWellFormed() ? JSON.parse(body) : null; } catch { value = null; }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail('the body is not a JSON object');
  return value;
}

const text = (value) => (typeof value === 'string' ? value : '');
