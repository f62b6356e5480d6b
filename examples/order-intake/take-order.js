// Takes an order: checks it, adds it up anew, and writes one order record. Nothing is written when it fails.
export default function handler(order) {
  const wrong = mistakes(order);
  if (Object.keys(wrong).length > 0) fail('The order has mistakes.', { status: 422, code: 'INVALID_ORDER', details: { fields: wrong } });

  const sum = total(order);
  if (sum.total !== cents(order.total)) {
    fail('The total is not the sum of the lines, the tax and the shipping.', { status: 409, code: 'TOTAL_MISMATCH', details: { sent: order.total, expected: sum.total / 100 } });
  }

  const email = order.email.trim().toLowerCase();
  const customer = records.list('customer', { where: { email }, limit: 1 }).records[0];
  if (customer === undefined) fail('There is no customer ' + email + '.', { status: 422, code: 'UNKNOWN_CUSTOMER' });
  if (customer.blocked) fail('The customer ' + email + ' is blocked.', { status: 409, code: 'CUSTOMER_BLOCKED' });

  const earlier = records.list('order', { where: { number: order.number }, limit: 1 }).records[0];
  if (earlier !== undefined) fail('There is an order ' + order.number + ' already.', { status: 409, code: 'DUPLICATE_ORDER', details: { order: earlier.id } });

  const { id } = records.create('order', {
    number: order.number, customer: customer.id, status: 'new', placed_at: new Date().toISOString(), currency: order.currency,
    lines: order.lines, ship_to: order.ship_to, note: order.note ?? null,
    net: sum.net / 100, tax: sum.tax / 100, shipping: sum.shipping / 100, total: sum.total / 100,
  });
  console.log('order', order.number, 'of', customer.name, 'with', order.lines.length, 'lines');
  return { order: id, number: order.number, customer: customer.name, net: sum.net / 100, tax: sum.tax / 100, total: sum.total / 100 };
}

// cents is an amount as a whole number, with which sums are exact; NaN for what is no amount.
function cents(amount) {
  const n = Math.round(amount * 100);
  return typeof amount === 'number' && Math.abs(amount * 100 - n) < 1e-6 && n >= 0 && n <= 1e11 ? n : NaN;
}

// mistakes are all that is wrong with an order, by the path of the place.
function mistakes({ number, currency, lines, ship_to, shipping, total }) {
  const wrong = {};
  const expect = (right, path, what) => { if (!right) wrong[path] = 'expected ' + what; };
  expect(/^[A-Z0-9-]{3,32}$/.test(number), 'number', '3 to 32 capital letters, digits or -');
  expect(['EUR', 'GBP', 'USD'].includes(currency), 'currency', 'EUR, GBP or USD');
  expect(cents(shipping ?? 0) >= 0, 'shipping', 'an amount');
  expect(cents(total) >= 0, 'total', 'an amount');
  for (const name of ['name', 'street', 'city', 'postcode', 'country']) {
    expect(typeof ship_to[name] === 'string' && ship_to[name].trim() !== '', 'ship_to.' + name, 'text');
  }
  if (!Array.isArray(lines) || lines.length < 1 || lines.length > 200) return { ...wrong, lines: 'expected a list of 1 to 200 lines' };
  lines.forEach((line, i) => {
    const { sku, quantity, unit_price, tax_rate } = line ?? {};
    const path = 'lines.' + i + '.';
    expect(typeof sku === 'string' && /^[A-Z0-9-]{1,40}$/.test(sku), path + 'sku', 'capital letters, digits or -');
    expect(Number.isInteger(quantity) && quantity >= 1 && quantity <= 9999, path + 'quantity', 'a whole number of 1 to 9999');
    expect(cents(unit_price) >= 0, path + 'unit_price', 'an amount');
    expect([0, 5, 7, 19, 20].includes(tax_rate), path + 'tax_rate', '0, 5, 7, 19 or 20');
  });
  return wrong;
}

// total adds up in cents. Tax is rounded once for each rate.
function total({ lines, shipping }) {
  const byRate = new Map();
  for (const { quantity, unit_price, tax_rate } of lines) byRate.set(tax_rate, (byRate.get(tax_rate) ?? 0) + quantity * cents(unit_price));
  const sum = { net: 0, tax: 0, shipping: cents(shipping ?? 0) };
  for (const [rate, net] of byRate) {
    sum.net += net;
    sum.tax += Math.round((net * rate) / 100);
  }
  return { ...sum, total: sum.net + sum.tax + sum.shipping };
}
