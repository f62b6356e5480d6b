import { useRef, useState } from 'react'

/** useHistory keeps what a value was, for undo and redo. What is typed within half a second is one step. */
export function useHistory<T>(value: T, set: (next: T) => void): { change: (next: T) => void; undo: () => void; redo: () => void; canUndo: boolean; canRedo: boolean } {
  const past = useRef<T[]>([])
  const future = useRef<T[]>([])
  const last = useRef(0)
  const [, draw] = useState(0)
  const go = (from: T[], to: T[]) => {
    const next = from.pop()
    if (next === undefined) return
    to.push(value)
    last.current = 0
    set(next)
    draw((n) => n + 1)
  }
  return {
    change: (next) => {
      const now = Date.now()
      if (now - last.current > 500) past.current = [...past.current.slice(-99), value]
      last.current = now
      future.current = []
      set(next)
    },
    undo: () => { go(past.current, future.current) },
    redo: () => { go(future.current, past.current) },
    canUndo: past.current.length > 0,
    canRedo: future.current.length > 0,
  }
}
