/**
 * apiBase is where the public API answers: at the host of this page when the console is there too (here), and otherwise at the tenant's
 * base URL.
 */
export function apiBase(baseUrl: string, here: boolean): string {
  return `${here ? window.location.origin : baseUrl.replace(/\/+$/, '')}/public/v1`
}
