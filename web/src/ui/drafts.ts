import { useCallback, useEffect, useRef, useState } from 'react'

/**
 * Drafts keep unsaved edits of an object in this browser's session storage, so that a reload or a sign-in loses nothing.
 * A secret never goes into one: leave secret fields out of what is handed to useDraft.
 */
const prefix = 'gatehouse.draft.'

/** dropDrafts forgets all of them: at sign-out. */
export function dropDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(prefix)) sessionStorage.removeItem(key)
}

interface Kept<T> { value: T; against: string }

export interface Draft<T> {
  /** value as edited; the stored one until something is changed. */
  value: T
  dirty: boolean
  /** restored is true when the edit came out of the session storage. */
  restored: boolean
  /** stale is true when the stored object has changed since the edit began. */
  stale: boolean
  /** against is the version that the edit began from: hand it to the server as the expected one. */
  against: string
  set: (next: T | ((was: T) => T)) => void
  discard: () => void
  /** rebase goes on with the edit over the newer version, after a conflict was looked at. */
  rebase: (version: string) => void
}

/**
 * useDraft edits a copy of stored. key names the object ("component/quote"), version is what the server calls its version.
 * Edits begun against an older version stay, and stale says so.
 */
export function useDraft<T>(key: string, stored: T, version: string): Draft<T> {
  const [kept, setKept] = useState<Kept<T> | undefined>(() => read<T>(key))
  const [restored, setRestored] = useState(kept !== undefined)
  const lastKey = useRef(key)
  useEffect(() => {
    if (lastKey.current === key) return
    lastKey.current = key
    const found = read<T>(key)
    setKept(found)
    setRestored(found !== undefined)
  }, [key])
  const write = useCallback((next: Kept<T> | undefined) => {
    try {
      if (next === undefined) sessionStorage.removeItem(prefix + key)
      else sessionStorage.setItem(prefix + key, JSON.stringify(next))
    } catch { /* storage is full or off: the edit lives on in the page */ }
  }, [key])
  const set = useCallback((next: T | ((was: T) => T)) => {
    setKept((was) => {
      const base = was ?? { value: stored, against: version }
      const value = typeof next === 'function' ? (next as (was: T) => T)(base.value) : next
      const made = same(value, stored) && base.against === version ? undefined : { value, against: base.against }
      write(made)
      return made
    })
  }, [stored, version, write])
  const discard = useCallback(() => { write(undefined); setKept(undefined); setRestored(false) }, [write])
  const rebase = useCallback((next: string) => {
    setKept((was) => { const made = was && { value: was.value, against: next }; write(made); return made })
  }, [write])
  return { value: kept ? kept.value : stored, dirty: kept !== undefined, restored, stale: kept !== undefined && kept.against !== version, against: kept?.against ?? version, set, discard, rebase }
}

function read<T>(key: string): Kept<T> | undefined {
  const text = sessionStorage.getItem(prefix + key)
  if (!text) return undefined
  try { return JSON.parse(text) as Kept<T> } catch { return undefined }
}

function same(a: unknown, b: unknown): boolean { return JSON.stringify(a) === JSON.stringify(b) }

/** seedDraft begins an edit of an object before its page is open, e.g. of a new one that is made from a recipe. */
export function seedDraft(key: string, value: unknown, against: string): void {
  try { sessionStorage.setItem(prefix + key, JSON.stringify({ value, against })) } catch { /* storage is full or off: the page begins empty */ }
}
