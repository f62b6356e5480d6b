// Stores an order of the web shop with its lines, for the customer who placed it: all of it, or nothing when it fails.
export default function handler({ number, customer, lines }) {
  const buyer = records.list('user', { where: { email: customer }, limit: 1 }).records[0];
  if (!buyer?.account) fail(customer + ' is no customer.', { status: 422, code: 'UNKNOWN_CUSTOMER' });

  const order = records.create('order', { number, account: buyer.account, channel: 'shop', owner_id: buyer.id });
  for (const { item, quantity, price } of lines) records.create('order_line', { order: order.id, item, quantity, price });
  return { order: order.id, lines: lines.length };
}
