import { useSyncExternalStore } from 'react'

export type Theme = 'system' | 'light' | 'dark'

const key = 'gatehouse.theme'
const dark = window.matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

function stored(): Theme {
  try {
    const value = localStorage.getItem(key)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    return 'system' // storage is off in this browser: the choice lasts for the page
  }
}

let chosen: Theme = stored()

function apply(): void {
  const root = document.documentElement
  if (chosen === 'system') delete root.dataset['theme']
  else root.dataset['theme'] = chosen
  for (const listener of listeners) listener()
}

apply()
dark.addEventListener('change', apply)
window.addEventListener('storage', (event) => {
  if (event.key === key) { chosen = stored(); apply() }
})

export function setTheme(theme: Theme): void {
  chosen = theme
  try {
    if (theme === 'system') localStorage.removeItem(key)
    else localStorage.setItem(key, theme)
  } catch { /* storage is off: the choice lasts for the page */ }
  apply()
}

const subscribe = (listener: () => void) => { listeners.add(listener); return () => { listeners.delete(listener) } }

/** useTheme gives the choice and the colours it comes to. */
export function useTheme(): { theme: Theme; scheme: 'light' | 'dark' } {
  const theme = useSyncExternalStore(subscribe, () => chosen)
  const system = useSyncExternalStore(subscribe, () => (dark.matches ? 'dark' : 'light'))
  return { theme, scheme: theme === 'system' ? system : theme }
}
