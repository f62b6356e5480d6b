// Links that nobody else can make: each has a signature of its query.
const signature = (params) => hmacSha256(secrets.QUOTE_KEY, params.toString(), "base64url");

export function signed(page, fields) {
  const url = new URL(page);
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  url.searchParams.set("signature", signature(url.searchParams));
  return url.href;
}

export function checked(link) {
  const params = new URL(link).searchParams;
  const given = params.get("signature") ?? "";
  params.delete("signature");
  if (!safeCompare(signature(params), given)) fail("The link was changed.", { status: 403, code: "CHANGED_LINK" });
  return Object.fromEntries(params);
}
