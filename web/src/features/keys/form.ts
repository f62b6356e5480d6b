import type { KeyInfo } from '../../api/admin'

/** A key as its form edits it: lists one a line, the expiry as a day. */
export interface KeyForm { name: string; limit: string; origins: string; addresses: string; expires: string }

export const emptyForm: KeyForm = { name: '', limit: '1000', origins: '', addresses: '', expires: '' }

/** formOf is the form of a stored key. An expiry is shown as its day in UTC. */
export function formOf(k: KeyInfo): KeyForm {
  return { name: k.name, limit: String(k.rateLimitPerMinute), origins: k.corsAllowedOrigins.join('\n'), addresses: k.ipAllowlist.join('\n'), expires: k.expiresAt?.slice(0, 10) ?? '' }
}

/** lines are the entries of a field with one a line. */
export function lines(text: string): string[] { return text.split('\n').map((line) => line.trim()).filter((line) => line !== '') }

/** endOf is the end of a day in UTC: a key that expires on a day works until it is over. */
export function endOf(day: string): string { return `${day}T23:59:59Z` }

/** limitOf reads the limit; what is no whole number is 0, which the server refuses with its own words. */
export function limitOf(text: string): number {
  const n = Number(text)
  return Number.isInteger(n) && text.trim() !== '' ? n : 0
}

/** changesOf are the members that differ between a form and the stored key's form. */
export function changesOf(stored: KeyForm, edited: KeyForm) {
  return {
    ...(edited.name === stored.name ? {} : { name: edited.name }),
    ...(edited.limit === stored.limit ? {} : { rateLimitPerMinute: limitOf(edited.limit) }),
    ...(edited.origins === stored.origins ? {} : { corsAllowedOrigins: lines(edited.origins) }),
    ...(edited.addresses === stored.addresses ? {} : { ipAllowlist: lines(edited.addresses) }),
    ...(edited.expires === stored.expires ? {} : { expiresAt: edited.expires === '' ? '' : endOf(edited.expires) }),
  }
}
