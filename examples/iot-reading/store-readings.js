// Stores what a gateway collected, at most 200 readings, all of them or none: [{serial, measured_at, value, unit}, …].
export default function handler({ readings }) {
  if (!Array.isArray(readings) || readings.length < 1 || readings.length > 200) fail('readings: expected a list of 1 to 200', { code: 'INVALID_READINGS' });
  const serials = [...new Set(readings.map((r) => r.serial))], devices = devicesOf(serials);
  const unknown = serials.filter((serial) => !devices.has(serial)), retired = serials.filter((serial) => devices.get(serial)?.retired);
  if (unknown.length > 0) fail('There are no such devices.', { code: 'UNKNOWN_DEVICE', details: { serials: unknown } });
  if (retired.length > 0) fail('The devices are retired.', { status: 409, code: 'DEVICE_RETIRED', details: { serials: retired } });
  records.createMany('reading', readings.map(({ serial, ...reading }) => ({ ...reading, device: devices.get(serial).id })));
  const last = new Map();
  for (const r of readings) if (!(Date.parse(last.get(r.serial)?.measured_at) > Date.parse(r.measured_at))) last.set(r.serial, r);
  records.updateMany('device', [...last].map(([serial, r]) => ({ id: devices.get(serial).id, fields: { last_seen: r.measured_at, last_value: r.value } })));
  return { stored: readings.length, devices: last.size };
}

// devicesOf returns the devices by serial number. A list takes 100 values at once.
function devicesOf(serials) {
  const found = new Map();
  for (let i = 0; i < serials.length; i += 100) {
    const page = records.list('device', { where: { serial: { in: serials.slice(i, i + 100) } }, fields: ['serial', 'retired'], limit: 100 });
    for (const d of page.records) found.set(d.serial, d);
  }
  return found;
}
