
export default function handler(order) {
  const sums = reckon(order, (message) => fail(message, { status: 422, code: "INVALID_ORDER" }));
  const { id } = records.create("order", {
    customer: order.customer, street: order.address.street, zip: order.address.zip, city: order.address.city,
    currency: order.currency, note: order.note, lines: order.lines, ...sums,
  });
  return { id, ...sums };
}
