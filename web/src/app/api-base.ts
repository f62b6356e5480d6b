/**
 * apiBase is where the public API answers: at the host of this page when the console is there too, and otherwise at the tenant's
 * base URL.
 */
export function apiBase(baseUrl: string, here: { hostname: string; origin: string } = window.location): string {
  let own = baseUrl.replace(/\/+$/, '')
  try {
    if (new URL(baseUrl).hostname === here.hostname) own = here.origin
  } catch { /* a base URL that is none: as it stands */ }
  return `${own}/public/v1`
}
