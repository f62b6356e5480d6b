import { IconArrowDown, IconArrowUp, IconTrash } from '@tabler/icons-react'
import { Button, IconButton } from '../../ui/button'
import { CheckField, TextField } from '../../ui/field'
import { SelectField, WordsField } from '../../ui/select'
import { refers, takesOptions, type FieldRow, type FieldValue } from './fields'

/** FieldForm edits one field in its row. problems are the server's words by member. */
export function FieldForm({ row, types, entities, ofUsers, problems, onChange, onRemove, onMove }: { row: FieldRow; types: readonly string[]; entities: readonly string[]; ofUsers: boolean; problems: Readonly<Record<string, string>>; onChange: (value: FieldValue) => void; onRemove: () => void; onMove: (by: 1 | -1) => void }) {
  const { value, was } = row
  const set = (patch: Partial<FieldValue>) => { onChange({ ...value, ...patch }) }
  return (
    <div className="cfg-field">
      <div className="cfg-form">
        <TextField label="Name" type="in the API" mono value={value.name} onChange={(name) => { set({ name }) }} error={problems['name'] ?? problems['']} required
          help={was !== '' && was !== value.name ? `Renamed from ${was}, with all data` : undefined} />
        <SelectField label="Type" value={value.type} options={types.map((type) => ({ value: type, label: type }))} onChange={(type) => { if (type) set({ type }) }} error={problems['type']} />
        {takesOptions(value.type) && <WordsField label="Options" help="Enter ends each" value={value.options ?? []} onChange={(options) => { set({ options }) }} error={problems['options']} />}
        {refers(value.type) && <SelectField label="Refers to" value={value.entity ?? null} options={entities.map((name) => ({ value: name, label: name }))} onChange={(entity) => { if (entity) set({ entity }) }} error={problems['entity']} required />}
      </div>
      <div className="cfg-flags">
        <CheckField label="Required" checked={value.required ?? false} onChange={(required) => { set({ required }) }} error={problems['required']} />
        {!ofUsers && <CheckField label="Unique" checked={value.unique ?? false} onChange={(unique) => { set({ unique }) }} error={problems['unique']} />}
        {!ofUsers && <CheckField label="Indexed: lists can be filtered by it" checked={value.indexed ?? false} onChange={(indexed) => { set({ indexed }) }} error={problems['indexed']} />}
        {!ofUsers && value.type === 'text' && <CheckField label="Searchable: lists can be searched for its words" checked={value.searchable ?? false} onChange={(searchable) => { set({ searchable }) }} error={problems['searchable']} />}
        {ofUsers && <CheckField label="Managed: not for users to set themselves" checked={value.managed ?? false} onChange={(managed) => { set({ managed }) }} error={problems['managed']} />}
      </div>
      <div className="row top6">
        <Button small kind="danger" icon={<IconTrash size={14} stroke={1.7} aria-hidden />} onClick={onRemove}>Remove {value.name}</Button>
        <span className="grow" />
        <IconButton small label={`Move ${value.name} up`} onClick={() => { onMove(-1) }}><IconArrowUp size={16} stroke={1.7} aria-hidden /></IconButton>
        <IconButton small label={`Move ${value.name} down`} onClick={() => { onMove(1) }}><IconArrowDown size={16} stroke={1.7} aria-hidden /></IconButton>
      </div>
    </div>
  )
}
