import { IconApi, IconArrowsSplit2, IconBraces, IconDatabaseEdit, IconDatabaseMinus, IconDatabasePlus, IconDatabaseSearch, IconFlag, IconHandStop, IconListSearch, IconRepeat, IconShare, IconShareOff, IconVariable } from '@tabler/icons-react'
import { VisuallyHidden } from '@mantine/core'
import { Handle, Position, type NodeProps, type Node } from '@xyflow/react'
import { usWords } from '../../app/build/outcome'
import type { FlowNode } from '../../app/build/objects'
import { summary } from './model'

const icons: Readonly<Record<string, typeof IconApi>> = {
  trigger: IconApi, 'record.create': IconDatabasePlus, 'record.get': IconDatabaseSearch, 'record.list': IconListSearch, 'record.update': IconDatabaseEdit, 'record.upsert': IconDatabasePlus, 'record.delete': IconDatabaseMinus,
  'record.share': IconShare, 'record.unshare': IconShareOff, component: IconBraces, set: IconVariable, output: IconFlag, if: IconArrowsSplit2, each: IconRepeat, fail: IconHandStop,
}

/** Icon is the sign of a type of node. */
export function Icon({ type, size = 17 }: { type: string; size?: number }) {
  const Sign = icons[type] ?? IconBraces
  return <Sign size={size} stroke={1.7} aria-hidden />
}

/** What a node of the drawing is told. ran says what the run that is shown did with it. */
export interface StepData extends Record<string, unknown> {
  path: string
  node: FlowNode | undefined
  words: string
  selected: boolean
  problem: string | undefined
  ran: { times: number; tookUs: number; failed: boolean; skipped: boolean } | 'not' | undefined
  onOpen: (path: string) => void
}

/** StepNode is one step of the flow: 236 by 58, as a button. */
export function StepNode({ data }: NodeProps<Node<StepData>>) {
  const { node, path, ran, problem } = data
  const state = ran === 'not' ? 'off' : ran ? (ran.failed ? 'failed' : ran.skipped ? 'off' : 'ran') : ''
  const name = node ? node.id ?? node.type : 'http.request'
  const times = ran && ran !== 'not' && ran.times > 1 ? `${ran.times} ×, ` : ''
  const ended = ran && ran !== 'not' ? ran.failed ? 'failed in ' : ran.skipped ? 'skipped in ' : 'ran in ' : ''
  return (
    <>
      {node && <Handle type="target" position={Position.Top} isConnectable={false} />}
      <button type="button" className={`nd nodrag ${state} ${data.selected ? 'sel' : ''} ${problem ? 'wrong' : ''}`} aria-pressed={data.selected} data-node={path} onClick={() => { data.onOpen(path) }}>
        <span className="ic"><Icon type={node ? node.type : 'trigger'} /></span>
        <span className="grow"><b>{name}</b> <span className="ty">{node ? (node.id ? node.type : '') : 'trigger'}</span> <span className="nt trunc">{problem ?? data.words}</span></span>
        {node && ran && ran !== 'not' && <span className="ms"> {times}<VisuallyHidden>{ended}</VisuallyHidden>{usWords(ran.tookUs)}</span>}
        {ran === 'not' && <VisuallyHidden> not run</VisuallyHidden>}
      </button>
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </>
  )
}

/** Join is where branches meet. */
export function Join() {
  return <><Handle type="target" position={Position.Top} isConnectable={false} /><span className="joint" aria-hidden="true" /><Handle type="source" position={Position.Bottom} isConnectable={false} /></>
}

/** Way is a point of a branch without steps. */
export function Way() { return <><Handle type="target" position={Position.Top} isConnectable={false} /><Handle type="source" position={Position.Bottom} isConnectable={false} /></> }

/** End is the end of the flow. */
export function End() { return <><Handle type="target" position={Position.Top} isConnectable={false} /><span className="endmark">end</span></> }

/** Frame goes around the body of an each. */
export function Frame() { return <div className="eachframe" aria-hidden="true" /> }

export { summary }
