import { useRef, useState } from 'react'

/**
 * useHistory keeps what a value was, for undo and redo. What is typed in one place without a pause of a second is one step: typing names
 * the place.
 */
export function useHistory<T>(value: T, set: (next: T) => void): { change: (next: T, typing?: string) => void; undo: () => void; redo: () => void; canUndo: boolean; canRedo: boolean } {
  const past = useRef<T[]>([])
  const future = useRef<T[]>([])
  const last = useRef<{ at: number; typing: string | undefined }>({ at: 0, typing: undefined })
  const [, draw] = useState(0)
  const go = (from: T[], to: T[]) => {
    const next = from.pop()
    if (next === undefined) return
    to.push(value)
    last.current = { at: 0, typing: undefined }
    set(next)
    draw((n) => n + 1)
  }
  return {
    change: (next, typing) => {
      const now = Date.now()
      const on = typing !== undefined && typing === last.current.typing && now - last.current.at < 1000
      if (!on) past.current = [...past.current.slice(-99), value]
      last.current = { at: now, typing }
      future.current = []
      set(next)
    },
    undo: () => { go(past.current, future.current) },
    redo: () => { go(future.current, past.current) },
    canUndo: past.current.length > 0,
    canRedo: future.current.length > 0,
  }
}
