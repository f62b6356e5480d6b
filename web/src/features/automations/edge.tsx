import { Menu } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { BaseEdge, EdgeLabelRenderer, getSmoothStepPath, type Edge, type EdgeProps } from '@xyflow/react'
import type { NodeType } from '../../app/build/names'
import type { Slot } from './layout'
import { Icon } from './node'

export interface LineData extends Record<string, unknown> { slot: Slot | undefined; label: string | undefined; on: boolean; off: boolean; ends: boolean; types: readonly NodeType[]; after: string; onInsert: (slot: Slot, type: NodeType) => void }

/** PlusEdge is a line with + on it: a step is put in there. */
export function PlusEdge({ id, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, data }: EdgeProps<Edge<LineData>>) {
  const [path] = getSmoothStepPath({ sourceX, sourceY, sourcePosition, targetX, targetY, targetPosition, borderRadius: 8, offset: 14 })
  if (!data) return null
  const { slot, label, types, onInsert } = data
  // Into a place where branches meet, + stands under the branch's own last step.
  const [x, y] = data.ends ? [sourceX, sourceY + 18] : [targetX, targetY - Math.min(label ? 14 : 22, Math.max(10, (targetY - sourceY) / 2))]
  return (
    <>
      <BaseEdge id={id} path={path} className={data.on ? 'run' : data.off ? 'off' : ''} />
      <EdgeLabelRenderer>
        {label && <span className={`el ${data.on ? 'on' : ''}`} style={{ transform: `translate(-50%, -50%) translate(${targetX}px, ${sourceY + 19}px)` }}>{label}{data.off ? ', not run' : ''}</span>}
        {slot && (
          <span className="plusat nopan nodrag" style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}>
            <Menu width={250} position="right-start" withinPortal shadow="md">
              <Menu.Target><button type="button" className="plus" aria-label={`Add a step ${data.after}`} data-slot={`${slot.list}:${slot.index}`}><IconPlus size={11} stroke={2.2} aria-hidden /></button></Menu.Target>
              <Menu.Dropdown className="addmenu">{types.map((t) => <Menu.Item key={t.type} leftSection={<Icon type={t.type} size={16} />} onClick={() => { onInsert(slot, t) }}><span className="mono">{t.type}</span> <span className="muted s12">{t.doc}</span></Menu.Item>)}</Menu.Dropdown>
            </Menu>
          </span>
        )}
      </EdgeLabelRenderer>
    </>
  )
}
