import { Menu, Popover } from '@mantine/core'
import { IconPlus, IconX } from '@tabler/icons-react'
import { useId, useLayoutEffect, useRef, useState, type ReactNode } from 'react'
import type { DataField } from '../../api/admin'
import { Button } from '../../ui/button'
import { SearchField } from '../../ui/filters'
import { clearPage } from '../../ui/paged'
import { useUrl } from '../../ui/url'
import { ConditionForm } from './condition-form'
import { aboutOf, choiceOf, choicesOf, faultOf, nameOf, operandsOf, type Condition } from './filters'
import { referenceOf, useLabels } from './queries'

interface BarProps { fields: readonly DataField[]; conditions: readonly Condition[]; search: string | undefined; faults: Readonly<Record<string, string>>; right?: ReactNode }

/** RecordFilters has a chip for each condition of the list, all of which must hold, "Filter", which adds one, and the search where there are searchable fields. faults are the API's words about fields. */
export function RecordFilters({ fields, conditions, search, faults, right }: BarProps) {
  const [, setUrl] = useUrl()
  const [adding, setAdding] = useState<DataField>()
  const [focus, setFocus] = useState<string>() // a condition's name, or adder
  const bar = useRef<HTMLDivElement>(null)
  const id = useId()
  // A chip that was changed may be another one now: the focus goes on to it.
  useLayoutEffect(() => {
    const to = focus === undefined ? null : bar.current?.querySelector<HTMLElement>(`[data-condition="${CSS.escape(focus)}"]`)
    if (to) { to.focus(); setFocus(undefined) }
  }, [focus, conditions])
  const taken = (field: DataField, but?: Condition) => conditions.filter((c) => c !== but && c.field?.name === field.name).map((c) => c.op)
  const set = (field: DataField, old: Condition | undefined) => (op: string, value: string) => {
    const name = nameOf(field.name, op)
    setUrl({ ...(old && { [old.name]: undefined }), [name]: value, ...clearPage })
    setAdding(undefined)
    setFocus(name)
  }
  const drop = (c: Condition) => { setUrl({ [c.name]: undefined, ...clearPage }); setFocus(adder) }
  const broken = new Map(conditions.map((c) => [aboutOf(c), faultOf(c, faults)]))
  return (
    <>
      <div className="filters" role="search" aria-label="Filters" ref={bar}>
        {conditions.map((c) => {
          const fault = faultOf(c, faults)
          return <ConditionChip key={c.name} condition={c} fault={fault} describedBy={fault && `${id}-${aboutOf(c)}`} taken={c.field ? taken(c.field, c) : []} onSet={c.field && set(c.field, c)} onDrop={() => { drop(c) }} />
        })}
        {adding && <NewChip key={adding.name} field={adding} taken={taken(adding)} onSet={set(adding, undefined)} onClose={() => { setAdding(undefined); setFocus(adder) }} />}
        <AddMenu fields={fields.filter((f) => choicesOf(f, taken(f)).length > 0)} alone={search === undefined && !conditions.some((c) => !c.field || c.field.filter)} onAdd={setAdding} />
        <span className="grow" />
        {right}
        {(search !== undefined || fields.some((f) => f.search)) && <SearchField label="Search words" value={search ?? ''} onChange={(next) => { setUrl({ search: next || undefined, ...clearPage }) }} />}
      </div>
      <div className="filterfaults" role="alert">{[...broken].map(([about, fault]) => fault !== undefined && <p key={about} id={`${id}-${about}`} className="help bad"><b>{about}</b>: {fault}</p>)}
        {search !== undefined && faults['search'] !== undefined && <p className="help bad"><b>Search</b>: {faults['search']}</p>}
      </div>
    </>
  )
}

const adder = 'adder'

/** titleOf names a condition without its value: field and operator, or the parameter of one that the page cannot offer. */
const titleOf = (c: Condition): string => (c.field ? `${c.field.name} ${choiceOf(c).words}` : c.name)

/** AddMenu is "Filter": the fields that an index answers, and those that go beside such a one only. */
function AddMenu({ fields, alone, onAdd }: { fields: readonly DataField[]; alone: boolean; onAdd: (field: DataField) => void }) {
  const beside = fields.filter((f) => !f.filter)
  const item = (f: DataField) => <Menu.Item key={f.name} disabled={!f.filter && alone} onClick={() => { onAdd(f) }}>{f.name}</Menu.Item>
  return (
    <Menu position="bottom-start" width={240} returnFocus={false}>
      <Menu.Target><Button kind="quiet" data-condition={adder} icon={<IconPlus size={16} stroke={1.7} aria-hidden />}>Filter</Button></Menu.Target>
      <Menu.Dropdown className="fieldmenu">
        {fields.filter((f) => f.filter).map(item)}
        {beside.length > 0 && <Menu.Label>{alone ? 'Not indexed: only beside a filter on one of the above' : 'Not indexed: records are looked at one by one'}</Menu.Label>}
        {beside.map(item)}
      </Menu.Dropdown>
    </Menu>
  )
}

interface ChipProps { condition: Condition; fault: string | undefined; describedBy: string | undefined; taken: readonly string[]; onSet: ((op: string, value: string) => void) | undefined; onDrop: () => void }

/** ConditionChip: field and operator | value | ×. A press on it changes it, if the page can offer it. */
function ConditionChip({ condition, fault, describedBy, taken, onSet, onDrop }: ChipProps) {
  const [open, setOpen] = useState(false)
  const { field } = condition
  const words = <><span className="k">{titleOf(condition)}</span>{choiceOf(condition).value === undefined && <>{' '}<b className="trunc"><Operands condition={condition} /></b></>}</>
  return (
    <span className={`fchip ${fault === undefined ? '' : 'bad'}`}>
      {field && onSet ? (
        <Popover opened={open} onChange={setOpen} position="bottom-start" trapFocus returnFocus width={280}>
          <Popover.Target><button type="button" className="fvalue" data-condition={condition.name} aria-describedby={describedBy} onClick={() => { setOpen(!open) }}>{words}</button></Popover.Target>
          <Popover.Dropdown aria-modal><ConditionForm field={field} at={condition} taken={taken} error={fault} onSet={(op, value) => { setOpen(false); onSet(op, value) }} /></Popover.Dropdown>
        </Popover>
      ) : <span className="fvalue fixed">{words}</span>}
      <button type="button" className="x" aria-label={`Remove the filter ${titleOf(condition)}`} onClick={onDrop}><IconX size={14} stroke={1.7} aria-hidden /></button>
    </span>
  )
}

/** NewChip is a condition that is not set yet. */
function NewChip({ field, taken, onSet, onClose }: { field: DataField; taken: readonly string[]; onSet: (op: string, value: string) => void; onClose: () => void }) {
  return (
    <span className="fchip">
      <Popover opened onChange={(is) => { if (!is) onClose() }} position="bottom-start" trapFocus width={280}>
        <Popover.Target><button type="button" className="fvalue" onClick={onClose}><span className="k">{field.name}</span></button></Popover.Target>
        <Popover.Dropdown aria-modal><ConditionForm field={field} at={undefined} taken={taken} error={undefined} onSet={onSet} /></Popover.Dropdown>
      </Popover>
    </span>
  )
}

/** Operands says what a condition compares with; records are named. */
function Operands({ condition }: { condition: Condition }): ReactNode {
  const { field } = condition
  const target = field && referenceOf(field)
  const values = operandsOf(condition)
  const labelOf = useLabels(target ?? '', target ? values : [])
  return values.map((value) => {
    if (target) return labelOf(value) ?? `${value.slice(0, 8)}…`
    if (field?.type === 'boolean') return value === 'true' ? 'yes' : value === 'false' ? 'no' : value
    return field?.type === 'datetime' ? value.replace('T', ' ').replace('Z', ' UTC') : value
  }).join(', ')
}
