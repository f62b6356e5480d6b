import type { ReactNode } from 'react'
import { Arch, type ArchState } from './arch'

/** One gate on the way: how it stands, its name, and why. */
export interface Gate { state: ArchState; name: ReactNode; why?: ReactNode; more?: ReactNode }

const said: Record<ArchState, string> = { open: 'passed', shut: 'stopped here', part: 'passed in part', none: 'not reached', hold: 'held' }

function classOf(gate: Gate): string { return gate.state === 'shut' || gate.state === 'hold' ? 'stop' : gate.state === 'none' ? 'rest' : '' }

/** Gates stand one under the other, with room for the reason: the why panel, the checks of a plan. */
export function Gates({ gates }: { gates: readonly Gate[] }) {
  return (
    <ol className="gates">
      {gates.map((gate, i) => (
        <li key={i} className={classOf(gate)}>
          <Arch state={gate.state} label={said[gate.state]} />
          <div className={gate.state === 'none' ? 'muted' : ''}>{gate.name}{gate.why && <div className="why">{gate.why}</div>}{gate.more}</div>
        </li>
      ))}
    </ol>
  )
}

/** Track shows how far a request came, side by side: Host, Public API, Key, Address, Rate, Permission, Fields, Sharing. */
export function Track({ gates, label }: { gates: readonly Gate[]; label: string }) {
  return (
    <ol className="track" aria-label={label}>
      {gates.map((gate, i) => (
        <li key={i} className={classOf(gate)}>
          <Arch state={gate.state} label={said[gate.state]} />
          <b>{gate.name}</b>{gate.why !== undefined && <span title={typeof gate.why === 'string' ? gate.why : undefined}>{gate.why}</span>}
        </li>
      ))}
    </ol>
  )
}

/** Verdict answers first, in a sentence; the gates under it are the evidence. */
export function Verdict({ yes, children, why }: { yes: boolean | 'part'; children: ReactNode; why?: ReactNode }) {
  const state: ArchState = yes === 'part' ? 'part' : yes ? 'open' : 'shut'
  return <div className={`verdict ${yes ? 'yes' : 'no'}`} role="status"><Arch state={state} size={20} /><div><b>{children}</b>{why && <p>{why}</p>}</div></div>
}
