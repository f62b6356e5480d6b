// reckon checks an order and adds it up: each line, each tax rate, and all.
// Money is rounded to cents. refuse is called with what is wrong, and throws.
function reckon(order, refuse) {
  const cents = (amount) => Math.round(amount * 100) / 100;
  const { customer, address, currency, lines } = order;
  if (typeof customer !== "string" || customer.trim() === "") refuse("the order names no customer");
  if (!/^[A-Z]{3}$/.test(currency)) refuse(`${currency} is no currency`);
  if (!address || !address.street || !/^\d{5}$/.test(address.zip)) refuse("the address is not complete");
  if (!lines || lines.length === 0) refuse("the order has no lines");

  const byRate = {};
  let items = 0;
  lines.forEach((line, n) => {
    if (!/^[A-Z]{2}-\d{5}$/.test(line.sku)) refuse(`line ${n + 1}: ${line.sku} is no article`);
    if (!Number.isInteger(line.quantity) || line.quantity < 1) refuse(`line ${n + 1}: ${line.quantity} is no quantity`);
    if (typeof line.price !== "number" || !(line.price >= 0)) refuse(`line ${n + 1}: ${line.price} is no price`);
    if (!(line.tax >= 0 && line.tax < 100)) refuse(`line ${n + 1}: ${line.tax} is no tax rate`);
    const group = (byRate[line.tax] ??= { rate: line.tax, net: 0, tax: 0 });
    group.net += cents(line.quantity * line.price);
    items += line.quantity;
  });

  const taxes = Object.values(byRate).sort((a, b) => a.rate - b.rate);
  for (const group of taxes) {
    group.net = cents(group.net);
    group.tax = cents((group.net * group.rate) / 100);
  }
  const net = cents(taxes.reduce((sum, group) => sum + group.net, 0));
  const tax = cents(taxes.reduce((sum, group) => sum + group.tax, 0));
  return { items, net, tax, gross: cents(net + tax), taxes };
}
