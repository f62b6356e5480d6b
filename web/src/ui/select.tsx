import { MultiSelect, Select, TagsInput } from '@mantine/core'
import { IconSelector } from '@tabler/icons-react'
import { useEffect, useState } from 'react'
import { Field, type FieldProps } from './field'

export interface Option { value: string; label: string; disabled?: boolean }

const icon = <IconSelector size={14} stroke={1.7} aria-hidden />

/** SelectField chooses one of a list; with more than a handful it is searched by typing. */
export function SelectField({ label, type, help, error, required, value, options, onChange, clearable, disabled, placeholder }: FieldProps & { value: string | null; options: readonly Option[]; onChange: (value: string | null) => void; clearable?: boolean; disabled?: boolean; placeholder?: string }) {
  return (
    <Field label={label} type={type} help={help} error={error} required={required}>
      {(ids) => <Select {...ids} data={[...options]} value={value} onChange={onChange} searchable={options.length > 7} clearable={clearable} allowDeselect={clearable ?? false} disabled={disabled} placeholder={placeholder} rightSection={clearable && value ? null : icon} rightSectionPointerEvents={clearable && value ? 'auto' : 'none'} nothingFoundMessage="Nothing matches" error={!!error} withErrorStyles />}
    </Field>
  )
}

/** ManyField chooses several of a list. */
export function ManyField({ label, type, help, error, required, value, options, onChange, disabled, placeholder }: FieldProps & { value: readonly string[]; options: readonly Option[]; onChange: (value: string[]) => void; disabled?: boolean; placeholder?: string }) {
  return (
    <Field label={label} type={type} help={help} error={error} required={required}>
      {(ids) => <MultiSelect {...ids} data={[...options]} value={[...value]} onChange={onChange} searchable disabled={disabled} placeholder={placeholder} nothingFoundMessage="Nothing matches" error={!!error} />}
    </Field>
  )
}

/** WordsField takes several texts, each ended by Enter or a comma. */
export function WordsField({ label, type, help, error, required, value, onChange, disabled, placeholder }: FieldProps & { value: readonly string[]; onChange: (value: string[]) => void; disabled?: boolean; placeholder?: string }) {
  return (
    <Field label={label} type={type} help={help} error={error} required={required}>
      {(ids) => <TagsInput {...ids} value={[...value]} onChange={onChange} disabled={disabled} placeholder={placeholder} error={!!error} />}
    </Field>
  )
}

/** LookupField chooses one of many that the server finds as one types: users, records. shown is the label of the value at hand. */
export function LookupField({ label, type, help, error, required, value, shown, find, onChange, clearable, disabled, placeholder = 'Find' }: FieldProps & { value: string | null; shown?: string | undefined; find: (text: string, signal: AbortSignal) => Promise<readonly Option[]>; onChange: (value: string | null, option: Option | undefined) => void; clearable?: boolean; disabled?: boolean; placeholder?: string }) {
  const [text, setText] = useState('')
  const [found, setFound] = useState<readonly Option[]>([])
  const [failed, setFailed] = useState<string>()
  const [open, setOpen] = useState(false)
  useEffect(() => {
    if (!open) return
    const stop = new AbortController()
    // What stands in the field as the chosen one's label is no search.
    const needle = text === shown ? '' : text
    const timer = setTimeout(() => {
      find(needle, stop.signal).then((list) => { if (!stop.signal.aborted) { setFound(list); setFailed(undefined) } }, (thrown: unknown) => { if (!stop.signal.aborted) setFailed(thrown instanceof Error ? thrown.message : String(thrown)) })
    }, needle ? 150 : 0)
    return () => { clearTimeout(timer); stop.abort() }
  }, [find, text, open, shown])
  const options = value && !found.some((o) => o.value === value) ? [{ value, label: shown ?? value }, ...found] : found
  return (
    <Field label={label} type={type} help={help} error={error ?? failed} required={required}>
      {(ids) => <Select {...ids} data={[...options]} value={value} searchable clearable={clearable} allowDeselect={clearable ?? false} disabled={disabled} placeholder={placeholder} onDropdownOpen={() => { setOpen(true) }} onDropdownClose={() => { setOpen(false) }} searchValue={text} onSearchChange={setText} filter={({ options: all }) => all} onChange={(next) => { onChange(next, options.find((o) => o.value === next)) }} rightSection={clearable && value ? null : icon} rightSectionPointerEvents={clearable && value ? 'auto' : 'none'} nothingFoundMessage="Nobody and nothing matches" error={!!error} />}
    </Field>
  )
}
