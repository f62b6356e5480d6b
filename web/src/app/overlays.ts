import { useSyncExternalStore } from 'react'

/** The overlays that any part may open: the palette and the help. */
export type Overlay = 'palette' | 'help' | undefined

let open: Overlay
const listeners = new Set<() => void>()
function set(next: Overlay) { open = next; for (const listener of listeners) listener() }

export const openPalette = () => { set('palette') }
export const openHelp = () => { set('help') }
export const closeOverlay = () => { set(undefined) }

export function useOverlay(): Overlay {
  return useSyncExternalStore((listener) => { listeners.add(listener); return () => { listeners.delete(listener) } }, () => open)
}
