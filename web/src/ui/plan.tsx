import { IconAlertTriangle, IconClock } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { CodeDiff } from './diff'

export type PlanOp = 'add' | 'change' | 'remove'

/** One change of a plan or of the history: what it is, before and after, what it costs and what it opens. */
export interface PlanItem {
  key: string
  op: PlanOp
  kind: string
  name: string
  /** what says the change in words: "gets an index", "2 fields". */
  what?: ReactNode
  before?: string | undefined
  after?: string | undefined
  notes?: readonly { warn?: boolean; text: ReactNode; icon?: ReactNode }[]
}

const signs: Record<PlanOp, [sign: string, cls: string, word: string]> = { add: ['+', 'add', 'added'], change: ['~', 'chg', 'changed'], remove: ['−', 'del', 'removed'] }

/** Op is the sign before a change. */
export function Op({ op }: { op: PlanOp }) { const [sign, cls, word] = signs[op]; return <span className={`op ${cls}`} role="img" aria-label={word}>{sign}</span> }

/** PlanView lists changes under the heads of their groups. */
export function PlanView({ groups }: { groups: readonly { title: string; items: readonly PlanItem[] }[] }) {
  return (
    <ol className="plan">
      {groups.filter((g) => g.items.length > 0).map((group) => [
        <li className="gh" key={group.title}>{group.title}</li>,
        ...group.items.map((item) => (
          <li key={item.key}>
            <div className="ph"><Op op={item.op} /><span className="kind">{item.kind}</span><b className="med mono">{item.name}</b>{item.what && <span className="what">{item.what}</span>}</div>
            {(item.before !== undefined || item.after !== undefined || (item.notes?.length ?? 0) > 0) && (
              <div className="pb">
                {(item.before !== undefined || item.after !== undefined) && <CodeDiff before={item.before ?? ''} after={item.after ?? ''} />}
                {item.notes?.map((note, i) => <div key={i} className={`cost ${note.warn ? 'warn' : ''}`}>{note.icon ?? (note.warn ? <IconAlertTriangle size={14} stroke={1.7} aria-hidden /> : <IconClock size={14} stroke={1.7} aria-hidden />)}<span>{note.text}</span></div>)}
              </div>
            )}
          </li>
        )),
      ])}
    </ol>
  )
}
