// Slack. https://docs.slack.dev/authentication/verifying-requests-from-slack
//
// Secret:  the app's "Signing Secret" (api.slack.com, the app, Basic Information, App Credentials), used as it is.
// Headers: X-Slack-Signature: v0=HEX — HMAC-SHA256 of "v0:TIME:body"; TIME is X-Slack-Request-Timestamp.
// Time:    signed, and must be within 300 seconds of now.
// Event:   a body that starts with { is JSON (Events API), any other a form: the fields of a slash command, or a field
//          payload with JSON (interactivity). So what it is does not hang on the Content-Type, which is not signed.
//          providerEventId is event_id; where there is none (slash commands, interactivity) it is the
//          signature's HEX, which Slack's time stamp makes another for every request. eventKind is the inner event's type
//          (app_mention), else the body's type (block_actions), else the command (/deploy).
//          canonicalEvent is the JSON body, the payload, or an object of the form's fields.
// Challenge: when an Events API address is saved, Slack sends a signed url_verification and wants its challenge back.
export default function handler({ rawBody, headers, config }) {
  const time = headers['x-slack-request-timestamp'] ?? '';
  const given = headers['x-slack-signature'] ?? '';
  if (!checkTimestampFresh(time)) fail('X-Slack-Request-Timestamp is missing, or not within 300 seconds of now');
  const expected = secrets(config)
    .map((secret) => hmacSha256(secret, 'v0:' + time + ':' + rawBody))
    .find((hex) => safeCompare(given, 'v0=' + hex));
  if (expected === undefined) fail('X-Slack-Signature: the signature is missing or wrong');
  const event = read(rawBody);
  if (event.type === 'url_verification') return { reply: { status: 200, contentType: 'text/plain', body: text(event.challenge) } };
  return { providerEventId: text(event.event_id) || expected, eventKind: text(event.event?.type) || text(event.type) || text(event.command), canonicalEvent: event };
}

// read is the event in a body whose signature is right.
function read(body) {
  if (!body.isWellFormed()) fail('the body is not UTF-8');
  if (body.startsWith('{')) return jsonObject(body);
  const fields = form(body);
  return fields.payload === undefined ? fields : jsonObject(fields.payload);
}

// form reads a form, in which Slack sends each field once.
function form(body) {
  const plain = (s) => {
    try { return decodeURIComponent(s.replaceAll('+', ' ')); } catch { fail('the form is not UTF-8'); }
  };
  const fields = new Map();
  for (const part of body.split('&')) {
    const at = part.indexOf('=');
    if (at < 1) fail('the body is neither JSON nor a form');
    const name = plain(part.slice(0, at));
    if (fields.has(name)) fail('the form has a field twice');
    fields.set(name, plain(part.slice(at + 1)));
  }
  return Object.fromEntries(fields);
}

function jsonObject(body) {
  let value;
  try { value = JSON.parse(body); } catch { value = null; }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail('the body is not a JSON object');
  return value;
}

// secrets are the current one and, while it is being replaced, the previous one.
function secrets(config) {
  const [current, previous] = config.webhook_secrets;
  if (!current) fail('the endpoint has no webhook secret');
  return previous ? [current, previous] : [current];
}

const text = (value) => (typeof value === 'string' ? value : '');
