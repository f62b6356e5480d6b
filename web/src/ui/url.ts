import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'
import { searchOf } from './link'

/** The query of the address: name to value, or values. */
export type Search = Record<string, string | string[] | undefined>

/** useUrl reads and writes the query. A change replaces the entry of the history unless push is asked for. */
export function useUrl(): [Search, (patch: Search, how?: { push?: boolean }) => void] {
  const search: Search = useSearch({ strict: false })
  const navigate = useNavigate()
  const set = useCallback((patch: Search, how?: { push?: boolean }) => {
    void navigate({ to: '.', search: ((old: Search) => {
      const next: Search = { ...old }
      for (const [name, value] of Object.entries(patch)) {
        if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) delete next[name]
        else next[name] = value
      }
      return next
    }), replace: !how?.push, resetScroll: false })
  }, [navigate])
  return [search, set]
}

/** useUrlValue is useUrl for one name with one value. */
export function useUrlValue(name: string): [string | undefined, (value: string | undefined, how?: { push?: boolean }) => void] {
  const [search, set] = useUrl()
  const value = search[name]
  const setOne = useCallback((next: string | undefined, how?: { push?: boolean }) => { set({ [name]: next }, how) }, [name, set])
  return [Array.isArray(value) ? value[0] : value, setOne]
}

/** useParam reads a $name of the page's path. */
export function useParam(name: string): string {
  const params: Record<string, string | undefined> = useParams({ strict: false })
  return params[name] ?? ''
}

/** useGo goes to an address of app/paths. */
export function useGo(): (to: string, how?: { replace?: boolean }) => void {
  const navigate = useNavigate()
  return useCallback((to, how) => {
    const cut = to.indexOf('?')
    void navigate({ to: cut < 0 ? to : to.slice(0, cut), search: (cut < 0 ? {} : searchOf(to.slice(cut + 1))), replace: how?.replace ?? false })
  }, [navigate])
}
