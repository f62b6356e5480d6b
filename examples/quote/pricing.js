// What lines cost, in cents, with the rates of the component that imports this.
export function total(lines, country) {
  const rate = config.rates[country];
  if (rate === undefined) fail(`There is no rate for ${country}.`, { status: 400, code: "UNKNOWN_COUNTRY" });
  const net = lines.reduce((sum, line) => sum + line.price * line.quantity, 0);
  return { net, tax: Math.round(net * rate) };
}

export const money = (cents) => (cents / 100).toFixed(2);
