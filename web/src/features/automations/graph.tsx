import '@xyflow/react/dist/base.css'
import { IconFocusCentered, IconMinus, IconPlus } from '@tabler/icons-react'
import { Background, BackgroundVariant, Panel, ReactFlow, ReactFlowProvider, useReactFlow, type Edge, type Node } from '@xyflow/react'
import { useEffect, useMemo, useRef } from 'react'
import type { NodeType } from '../../app/build/names'
import type { AutomationValue, FlowNode } from '../../app/build/objects'
import type { Problem, Step } from '../../app/build/run'
import { IconButton } from '../../ui/button'
import { PlusEdge, type LineData } from './edge'
import { draw, type Slot } from './layout'
import { End, Frame, Join, StepNode, summary, Way, type StepData } from './node'

const nodeTypes = { step: StepNode, join: Join, way: Way, end: End, frame: Frame }
const edgeTypes = { plus: PlusEdge }

export interface GraphProps {
  flow: AutomationValue
  types: readonly NodeType[]
  selected: string | undefined
  problems: readonly Problem[]
  /** trace of the run that is shown on the flow. */
  trace: readonly Step[] | undefined
  onSelect: (path: string) => void
  onInsert: (slot: Slot, type: NodeType) => void
}

/** ranOf sums what a run did with a node: a step is named by the node's id, or else by its path. */
function ranOf(trace: readonly Step[] | undefined, node: FlowNode | undefined, path: string): StepData['ran'] {
  if (!trace || !node) return undefined
  const steps = trace.filter((s) => s.node === (node.id ?? path))
  if (steps.length === 0) return 'not'
  return { times: steps.length, tookUs: steps.reduce((n, s) => n + s.took_us, 0), failed: steps.some((s) => s.error), skipped: steps.every((s) => s.skipped) }
}

/** Graph draws the flow; steps and + are buttons, in the order of the flow. */
export function Graph(props: GraphProps) { return <ReactFlowProvider><Canvas {...props} /></ReactFlowProvider> }

function Canvas({ flow, types, selected, problems, trace, onSelect, onInsert }: GraphProps) {
  const view = useReactFlow()
  const drawing = useMemo(() => draw(flow), [flow])
  const frame = useRef<HTMLDivElement>(null)
  const ran = useMemo(() => new Map(drawing.boxes.map((b) => [b.id, ranOf(trace, b.node, b.id)])), [drawing, trace])
  const nodes = useMemo<Node[]>(() => drawing.boxes.map((b) => ({
    id: b.id, type: b.kind === 'trigger' || b.kind === 'node' ? 'step' : b.kind, position: { x: b.x, y: b.y }, width: b.width, height: b.height,
    measured: { width: b.width, height: b.height }, // without it the lines and their + are taken away and drawn again with each change, and lose the focus
    zIndex: b.kind === 'frame' ? -1 : 1, draggable: false, selectable: false, focusable: false,
    data: {
      path: b.id, node: b.node, selected: selected === b.id, onOpen: onSelect, ran: b.kind === 'trigger' && trace ? { times: 1, tookUs: 0, failed: false, skipped: false } : ran.get(b.id),
      words: b.node ? summary(b.node) : `${flow.input_schema?.length ?? 0} inputs`, problem: problems.find((p) => p.node === b.id)?.message,
    } satisfies StepData,
  })), [drawing, selected, problems, trace, ran, flow.input_schema, onSelect])
  const edges = useMemo<Edge<LineData>[]>(() => {
    const verdict = (path: string): unknown => { const box = drawing.boxes.find((o) => o.id === path); return trace?.filter((t) => t.node === (box?.node?.id ?? path)).at(-1)?.result }
    const ok = (path: string): boolean => { const r = ran.get(path); return r !== undefined && r !== 'not' && !r.failed && !r.skipped }
    const went = (id: string): boolean => {
      if (!trace) return false
      if (id === 'trigger') return true
      if (id === 'end') return !trace.some((t) => t.error)
      const way = /^(.*)\.(then|else|do)\.way$/.exec(id)
      if (way) return ok(way[1] ?? '') && (way[2] === 'do' || verdict(way[1] ?? '') === (way[2] === 'then'))
      if (id.endsWith('.join')) return ok(id.slice(0, -'.join'.length))
      return ran.get(id) !== 'not'
    }
    return drawing.lines.map((l) => {
      const on = trace !== undefined && went(l.from) && went(l.to)
      const before = flowName(flow, l)
      return { id: l.id, source: l.from, target: l.to, type: 'plus', focusable: false, selectable: false, data: { slot: l.slot, label: l.label, on, off: trace !== undefined && !on, ends: l.to.endsWith('.join') && l.label === undefined, types, after: before, onInsert } }
    })
  }, [drawing, trace, ran, types, onInsert, flow])
  const first = useRef(true)
  useEffect(() => {
    if (!first.current) return
    first.current = false
    // The whole flow, or its beginning where that would be too small to read.
    requestAnimationFrame(() => {
      const box = frame.current?.getBoundingClientRect()
      if (!box) return
      const zoom = Math.min(1, Math.max(0.7, Math.min((box.width - 60) / drawing.width, (box.height - 40) / drawing.height)))
      void view.setViewport({ x: box.width / 2 - (drawing.width / 2) * zoom, y: 24, zoom })
    })
  }, [drawing, view])
  return (
    <div className="cv" ref={frame}>
      <ReactFlow nodes={nodes} edges={edges} nodeTypes={nodeTypes} edgeTypes={edgeTypes} nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false} elementsSelectable={false} zoomOnDoubleClick={false} minZoom={0.25} maxZoom={1.5} proOptions={{ hideAttribution: true }} aria-label="The flow">
        <Background variant={BackgroundVariant.Dots} gap={16} size={1.2} />
        <Panel position="bottom-left" className="zm">
          <IconButton small label="Zoom in" onClick={() => void view.zoomIn()}><IconPlus size={16} stroke={1.7} aria-hidden /></IconButton>
          <IconButton small label="Zoom out" onClick={() => void view.zoomOut()}><IconMinus size={16} stroke={1.7} aria-hidden /></IconButton>
          <IconButton small label="Show the whole flow" onClick={() => void view.fitView({ padding: 0.1, maxZoom: 1 })}><IconFocusCentered size={16} stroke={1.7} aria-hidden /></IconButton>
        </Panel>
      </ReactFlow>
    </div>
  )
}

/** flowName says where a line is, for the label of its +. */
function flowName(flow: AutomationValue, line: { from: string; label?: string }): string {
  if (line.from === 'trigger') return 'at the beginning'
  const where = line.from.replace(/(\.(then|else|do)\.way|\.join)$/, '')
  const found = where.split('.').reduce<unknown>((at, part) => {
    const m = /^(\w+)\[(\d+)\]$/.exec(part)
    return m && at !== null && typeof at === 'object' ? ((at as Record<string, unknown>)[m[1] ?? ''] as unknown[] | undefined)?.[Number(m[2])] : undefined
  }, { nodes: flow.nodes })
  const name = (found as FlowNode | undefined)?.id ?? where
  return line.label ? `under ${name}, ${line.label}` : `after ${name}`
}
