import { Link as RouterLink } from '@tanstack/react-router'
import type { AnchorHTMLAttributes } from 'react'

/** Link goes to an address of the console (from app/paths), which may have a query. */
export function Link({ to, children, ...rest }: { to: string } & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'>) {
  const cut = to.indexOf('?')
  const path = cut < 0 ? to : to.slice(0, cut)
  const search = cut < 0 ? {} : searchOf(to.slice(cut + 1))
  return <RouterLink to={path} search={search} {...rest}>{children}</RouterLink>
}

/** searchOf reads a query as the router keeps it: one string, or several under one name. */
export function searchOf(query: string): Record<string, string | string[]> {
  const out: Record<string, string | string[]> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    const had = out[name]
    out[name] = had === undefined ? value : Array.isArray(had) ? [...had, value] : [had, value]
  }
  return out
}

/** queryOf writes it back; empty values are left out. */
export function queryOf(search: Record<string, unknown>): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== '') params.append(name, String(one))
    }
  }
  const text = params.toString()
  return text ? `?${text}` : ''
}
