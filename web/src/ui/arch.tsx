/**
 * The arch is the one sign of the console: open = passed or allowed, shut = refused here, part = in part,
 * none = not allowed or not reached, hold = held (look here).
 */
export type ArchState = 'open' | 'shut' | 'part' | 'none' | 'hold'

const words: Record<ArchState, string> = { open: 'open', shut: 'shut', part: 'in part', none: 'not reached', hold: 'held' }

/** Arch draws the sign; label names it for a screen reader, and without one it is decoration beside a word. */
export function Arch({ state, label, size = 14 }: { state: ArchState; label?: string | true; size?: number }) {
  const name = label === true ? words[state] : label
  const aria = name ? { role: 'img', 'aria-label': name } : { 'aria-hidden': true }
  return (
    <svg className={`g ${state}`} viewBox="0 0 14 14" width={size} height={size} {...aria}>
      <path className="a" d="M2.5 12.5V6.2a4.5 4.5 0 0 1 9 0v6.3z" />
      {state === 'part' && <path className="h" d="M2.5 12.5V8h9v4.5z" />}
      {(state === 'shut' || state === 'hold') && <path className="b" d="M5.6 2.6v9.9M8.4 2.6v9.9M2.5 7.6h9" />}
    </svg>
  )
}

/** Mark is the gatehouse itself: the product's sign in the rail and at sign-in. */
export function Mark({ size = 24 }: { size?: number }) {
  return (
    <svg className="mark" viewBox="0 0 24 24" width={size} height={size} fill="currentColor" aria-hidden="true">
      <path d="M2.5 22V3.5h4.4v2.7h2.8V3.5h4.6v2.7h2.8V3.5h4.4V22h-5.1v-6.4a4.4 4.4 0 0 0-8.8 0V22z" />
    </svg>
  )
}
