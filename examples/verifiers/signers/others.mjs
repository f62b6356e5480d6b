// node others.mjs NOW: writes deliveries of the providers that sign otherwise than with HMAC-SHA256 of a header, as JSON lines:
// {name, file, secret, other, headers, body, request}, other being another secret, and {id, kind, event}, {reply} or {reject}, a part of the message. Each is checked by the
// provider's own library, of those that have one: it must pass, or fail where what is to be rejected is not a matter of time.
import { strict as assert } from 'node:assert';
import { createHmac, createSign, generateKeyPairSync, sign } from 'node:crypto';
import { EventWebhook } from '@sendgrid/eventwebhook';
import { verifyKey } from 'discord-interactions';
import twilio from 'twilio';

const now = Number(process.argv[2]);
const emit = (d) => process.stdout.write(JSON.stringify({ ...d, body: Buffer.from(d.body).toString('base64') }) + '\n');
const hash = (key, text) => createHmac('sha256', key).update(text).digest('hex');
const changed = (s, at = 0) => s.slice(0, at) + (s[at] === 'a' ? 'b' : 'a') + s.slice(at + 1);

// Discord.
{
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const other = generateKeyPairSync('ed25519');
  const hex = (key) => key.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');
  const secret = hex(publicKey);
  const send = async (name, body, want, { time = now, key = privateKey, edit = (d) => d, late = false } = {}) => {
    const d = edit({ body, headers: { 'x-signature-timestamp': String(time), 'x-signature-ed25519': sign(null, Buffer.from(time + body), key).toString('hex') } });
    const passes = await verifyKey(d.body, d.headers['x-signature-ed25519'] ?? '', d.headers['x-signature-timestamp'] ?? '', secret);
    assert.equal(passes, late || want.reject === undefined || want.signed === true, 'discord: ' + name);
    emit({ name, file: 'discord.js', secret, other: hex(other.publicKey), ...d, ...want });
  };
  const command = { id: '1130000000000000001', application_id: '1', type: 2, token: 'x', version: 1, data: { name: 'größe 😀', type: 1 } };
  const body = JSON.stringify(command), right = { id: command.id, kind: 'größe 😀', event: command };
  await send('a command', body, right);
  await send('300 seconds old', body, right, { time: now - 300 });
  const button = { ...command, type: 3, data: { custom_id: 'yes', component_type: 2 } };
  await send('a button', JSON.stringify(button), { id: command.id, kind: 'yes', event: button });
  await send('PING of interactions', JSON.stringify({ id: '1', application_id: '1', type: 1, token: 'x', version: 1 }), { reply: { status: 200, contentType: 'application/json', body: { type: 1 } } });
  await send('PING of events', JSON.stringify({ version: 1, application_id: '1', type: 0 }), { reply: { status: 204 } });
  const added = { version: 1, application_id: '1', type: 1, event: { type: 'APPLICATION_AUTHORIZED', timestamp: '2026-01-31T12:00:00', data: { user: { id: '2' } } } };
  await send('an event', JSON.stringify(added), { id: hash('discord', JSON.stringify(added)), kind: 'APPLICATION_AUTHORIZED', event: added });
  const wrong = { reject: 'X-Signature-Ed25519: the signature is missing or wrong' };
  await send('PING with a wrong signature', JSON.stringify({ type: 1 }), wrong, { key: other.privateKey });
  await send('another key', body, wrong, { key: other.privateKey });
  await send('another body', body, wrong, { edit: (d) => ({ ...d, body: d.body + ' ' }) });
  await send('another time', body, wrong, { edit: (d) => ({ ...d, headers: { ...d.headers, 'x-signature-timestamp': String(now - 1) } }) });
  await send('a changed signature', body, wrong, { edit: (d) => ({ ...d, headers: { ...d.headers, 'x-signature-ed25519': changed(d.headers['x-signature-ed25519']) } }) });
  await send('a signature cut short', body, wrong, { edit: (d) => ({ ...d, headers: { ...d.headers, 'x-signature-ed25519': d.headers['x-signature-ed25519'].slice(2) } }) });
  await send('no signature', body, wrong, { edit: ({ headers: { 'x-signature-ed25519': _, ...headers }, ...d }) => ({ ...d, headers }) });
  for (const [how, other] of [['in upper case', (s) => s.toUpperCase()], ['in base64', (s) => Buffer.from(s, 'hex').toString('base64')]]) {
    await send('a signature ' + how, body, { ...wrong, signed: how === 'in upper case' }, {
      edit: (d) => ({ ...d, headers: { ...d.headers, 'x-signature-ed25519': other(d.headers['x-signature-ed25519']) } }) });
  }
  for (const time of [now - 301, now + 301, now + '000', 'now', '']) await send('signed at ' + time, body, { reject: 'not within 300 seconds' }, { time, late: true });
  await send('no object', '[]', { reject: 'the body is not a JSON object', signed: true });
  await send('no id', JSON.stringify({ type: 2, data: {} }), { reject: 'the interaction has no id', signed: true });
}

// SendGrid.
{
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const other = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const secret = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  const library = new EventWebhook();
  const TIME = 'x-twilio-email-event-webhook-timestamp', SIGNATURE = 'x-twilio-email-event-webhook-signature';
  const send = (name, body, want, { time = now, key = privateKey, edit = (d) => d, late = false } = {}) => {
    const d = edit({ body, headers: { [TIME]: String(time), [SIGNATURE]: createSign('sha256').update(time + body).sign(key).toString('base64') } });
    let passes;
    try { passes = library.verifySignature(library.convertPublicKeyToECDSA(secret), d.body, d.headers[SIGNATURE] ?? '', d.headers[TIME] ?? ''); } catch { passes = false; }
    assert.equal(passes, late || want.reject === undefined || want.signed === true, 'sendgrid: ' + name);
    emit({ name, file: 'sendgrid.js', secret, other: other.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'), ...d, ...want });
  };
  const events = [{ email: 'größe@example.com', event: 'delivered', sg_event_id: 'a', timestamp: now }, { email: 'b@example.com', event: 'delivered', sg_event_id: 'b', timestamp: now }];
  const body = JSON.stringify(events) + '\r\n', right = { id: hash('sendgrid', body), kind: 'delivered', event: { events } };
  send('events', body, right);
  send('a day old', body, right, { time: now - 90_000 });
  const mixed = [...events, { event: 'open' }];
  send('events of several kinds', JSON.stringify(mixed), { id: hash('sendgrid', JSON.stringify(mixed)), kind: '', event: { events: mixed } });
  const wrong = { reject: 'X-Twilio-Email-Event-Webhook-Signature: the signature is missing or wrong' };
  send('another key', body, wrong, { key: other.privateKey });
  send('another body', body, wrong, { edit: (d) => ({ ...d, body: d.body + ' ' }) });
  send('another time', body, wrong, { edit: (d) => ({ ...d, headers: { ...d.headers, [TIME]: String(now - 1) } }) });
  send('a changed signature', body, wrong, { edit: (d) => ({ ...d, headers: { ...d.headers, [SIGNATURE]: changed(d.headers[SIGNATURE], 20) } }) });
  send('no signature', body, wrong, { edit: (d) => ({ ...d, headers: { [TIME]: d.headers[TIME] } }) });
  for (const time of [now - 90_001, now + 90_001, 'now', '']) send('signed at ' + time, body, { reject: 'not within 25 hours' }, { time, late: true });
  send('no list', '{}', { reject: 'the body is not a JSON list', signed: true });
}

// Twilio.
{
  const secret = 'f'.repeat(31) + '1', address = 'https://acme.example/public/v1/custom/hook';
  const send = (name, fields, want, { query = '', signedAs = address + query, key = secret, headers = {}, edit = (d) => d } = {}) => {
    const form = new URLSearchParams(Object.entries(fields).flatMap(([k, v]) => [v].flat().map((one) => [k, one]))).toString();
    const d = edit({ body: form, headers: { 'x-twilio-signature': twilio.getExpectedTwilioSignature(key, signedAs, fields), ...headers } });
    const got = {};
    for (const [k, v] of new URLSearchParams(d.body)) got[k] = k in got ? [got[k], v].flat() : v;
    const passes = twilio.validateRequest(secret, d.headers['x-twilio-signature'] ?? '', address + query, got);
    assert.equal(passes, want.reject === undefined, 'twilio: ' + name);
    emit({ name, file: 'twilio.js', secret, other: 'another-secret', request: { method: 'POST', query: {}, url: address + query }, ...d, ...want, id: want.id ?? d.headers['x-twilio-signature'] });
  };
  const message = { MessageSid: 'SM0', AccountSid: 'AC0', From: '+4930', To: '+4940', Body: 'Größe & 100 % = 😀+', SmsStatus: 'received', a: '', Z: '1' };
  send('a message', message, { kind: 'received', event: message });
  send('a message with a token', message, { kind: 'received', event: message, id: 'token-1' }, { headers: { 'i-twilio-idempotency-token': 'token-1' } });
  send('a query', message, { kind: 'received', event: message }, { query: '?from=shop&x=%20' });
  send('an address with its port', message, { kind: 'received', event: message }, { signedAs: address.replace('.example/', '.example:443/') });
  const call = { CallSid: 'CA0', CallStatus: 'ringing' };
  send('a call', call, { kind: 'ringing', event: call });
  send('a status', { ...call, MessageStatus: 'sent' }, { kind: 'sent', event: { ...call, MessageStatus: 'sent' } });
  send('a field several times', { CallSid: 'CA0', MediaUrl: ['b', 'a', 'b'] }, { kind: '', event: { CallSid: 'CA0', MediaUrl: ['a', 'b'] } });
  const wrong = { reject: 'X-Twilio-Signature: the signature is missing or wrong' };
  send('another token', message, wrong, { key: 'e'.repeat(32) });
  send('another field', message, wrong, { edit: (d) => ({ ...d, body: d.body + '&more=1' }) });
  send('another value', message, wrong, { edit: (d) => ({ ...d, body: d.body.replace('4930', '4931') }) });
  send('another query', message, wrong, { query: '?x=1', signedAs: address + '?x=2' });
  send('another address', message, wrong, { signedAs: address + 's' });
  send('another host', message, wrong, { signedAs: address.replace('acme', 'evil') });
  send('a changed signature', message, wrong, { edit: (d) => ({ ...d, headers: { 'x-twilio-signature': changed(d.headers['x-twilio-signature']) } }) });
  send('no signature', message, wrong, { edit: (d) => ({ ...d, headers: {} }) });
  send('two signatures', message, wrong, { edit: (d) => ({ ...d, headers: { 'x-twilio-signature': d.headers['x-twilio-signature'] + ', ' + d.headers['x-twilio-signature'] } }) });
  // What the library passes, or would take too long to read.
  const refused = (name, body, reject, { fields = {}, query = {}, url = address, headers = {} } = {}) =>
    emit({ name, file: 'twilio.js', secret, body, request: { query, url }, reject, headers: { 'x-twilio-signature': twilio.getExpectedTwilioSignature(secret, url, fields), ...headers } });
  refused('two tokens of idempotency', 'a=b', 'expected one value', { fields: { a: 'b' }, headers: { 'i-twilio-idempotency-token': 'a, b' } });
  refused('JSON', '{"a": "b"}', 'the body is not a form');
  refused('an empty form', '', 'the form is empty');
  refused('JSON with its hash', '{"a": "b"}', 'bodySHA256: the body is not a form', { query: { bodySHA256: 'x' }, url: address + '?bodySHA256=x' });
  refused('1,001 fields', Array.from({ length: 1001 }, (_, i) => i + '=').join('&'), 'more than 1,000 fields');
  refused('a field of 64 KiB', 'a=' + 'b'.repeat(64 << 10), 'larger than 64 KiB');
  refused('a form of many fields, and no signature', 'a=&'.repeat(300_000), wrong.reject, { headers: { 'x-twilio-signature': 'x' } });
  refused('a form of one name 1,000 times, and another signature', Array(1000).fill('a=').join('&'), wrong.reject);
}

// Mailgun, which has no library that checks: as its documentation says.
{
  const secret = 'key-' + '0'.repeat(32);
  const send = (name, want, { time = String(now), token = 'a'.repeat(50), key = secret, edit = (d) => d } = {}) => {
    const signature = { timestamp: time, token, signature: createHmac('sha256', key).update(time + token).digest('hex') };
    emit({ name, file: 'mailgun.js', secret, other: 'another-secret', headers: {}, body: JSON.stringify(edit({ signature, 'event-data': { event: 'delivered', id: 'x', größe: '😀' } })), ...want });
  };
  const right = { id: 'a'.repeat(50), kind: 'delivered', event: { event: 'delivered', id: 'x', größe: '😀' } };
  send('an event', right);
  send('an event 9 hours old', right, { time: String(now - 32_400) });
  const wrong = { reject: 'signature.signature is missing or wrong' };
  send('another key', wrong, { key: 'key-1' });
  send('another token', wrong, { edit: (d) => ({ ...d, signature: { ...d.signature, token: 'b' } }) });
  send('another time', wrong, { edit: (d) => ({ ...d, signature: { ...d.signature, timestamp: String(now - 1) } }) });
  send('a changed signature', wrong, { edit: (d) => ({ ...d, signature: { ...d.signature, signature: changed(d.signature.signature) } }) });
  send('no signature', wrong, { edit: (d) => ({ ...d, signature: { ...d.signature, signature: undefined } }) });
  send('a signature that is a list', wrong, { edit: (d) => ({ ...d, signature: { ...d.signature, signature: [d.signature.signature] } }) });
  send('a token of digits moved into the time', { reject: 'signature.timestamp' }, { edit: (d) => ({ ...d, signature: { ...d.signature, timestamp: d.signature.timestamp + 'a', token: d.signature.token.slice(1) } }) });
  send('no token', { reject: 'signature.token is missing' }, { token: '' });
  send('no signature at all', { reject: 'signature.timestamp is missing' }, { edit: (d) => ({ 'event-data': d['event-data'] }) });
  send('an event of 256 KiB', { reject: 'the body is larger than 256 KiB' }, { edit: (d) => ({ ...d, more: 'x'.repeat(256 << 10) }) });
  send('no event', { reject: 'event-data is not an object' }, { edit: (d) => ({ signature: d.signature }) });
  for (const time of [now - 32_401, now + 32_401, '', 'now'].map(String)) send('signed at ' + time, { reject: 'not within 9 hours' }, { time });
}
