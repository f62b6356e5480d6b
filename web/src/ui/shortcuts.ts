import { useEffect, useRef } from 'react'

/** A combination is keys joined by +: "mod+k" (⌘ on a Mac, Ctrl elsewhere), "?", "[", "mod+Enter". */
export interface Shortcut { combo: string; label: string }

const all = new Map<symbol, Shortcut & { run: () => void }>()

export const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent)

/** comboWords writes a combination as it stands on the keys. */
export function comboWords(combo: string): string {
  return combo.split('+').map((key) => key === 'mod' ? (isMac ? '⌘' : 'Ctrl') : key === 'Enter' ? '↵' : key.length === 1 ? key.toUpperCase() : key).join(isMac ? '' : ' ')
}

function matches(event: KeyboardEvent, combo: string): boolean {
  const parts = combo.split('+')
  const key = parts.at(-1) ?? ''
  const mod = parts.includes('mod')
  if (mod !== (isMac ? event.metaKey : event.ctrlKey)) return false
  if (event.altKey) return false
  return event.key.toLowerCase() === key.toLowerCase()
}

function inText(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && (target as HTMLInputElement).type !== 'checkbox')
}

window.addEventListener('keydown', (event) => {
  if (event.defaultPrevented) return
  // The newest registration wins: a page's shortcut over the shell's.
  for (const shortcut of [...all.values()].reverse()) {
    if (!matches(event, shortcut.combo)) continue
    if (!shortcut.combo.includes('mod') && (inText(event.target) || document.querySelector('[role=dialog][aria-modal=true]'))) continue
    event.preventDefault()
    // A key that is held down saves and runs once; it undoes again and again.
    if (event.repeat && !/^mod\+[zy]$/.test(shortcut.combo)) return
    shortcut.run()
    return
  }
})

/** useShortcut registers a combination while the part is shown; the help lists it by its label. */
export function useShortcut(combo: string, label: string, run: () => void): void {
  const latest = useRef(run)
  useEffect(() => { latest.current = run })
  useEffect(() => {
    const key = Symbol(combo)
    all.set(key, { combo, label, run: () => { latest.current() } })
    return () => { all.delete(key) }
  }, [combo, label])
}

/** shortcutsNow lists what works on the page that is open. */
export function shortcutsNow(): readonly Shortcut[] { return [...all.values()] }
