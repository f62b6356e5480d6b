import './config.css'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ask, type Gives } from '../../api/client'
import { asError } from '../../api/error'
import { objectsKey, type Edit } from '../../app/objects'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { ConflictView } from '../../ui/conflict'
import { useDraft } from '../../ui/drafts'
import { TextField } from '../../ui/field'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { SaveBar } from '../../ui/savebar'
import { SelectField } from '../../ui/select'
import { Empty, ErrorState, Note, Skeleton } from '../../ui/states'
import { DataTable } from '../../ui/table'
import { countWords } from '../../ui/time'
import { LeaveGuard } from '../../ui/unsaved'
import { useGo, useParam, useUrlValue } from '../../ui/url'
import { FieldForm } from './field-form'
import { changes, editOf, fieldsOf, merged, newRow, problemOf, refers, takesOptions, valueOf, type EntityEdit, type EntityValue, type FieldRow, type FieldValue } from './fields'
import { iconOf, memberOf, useKinds } from './kinds'
import { useReview } from './review'
import { sharingWords } from './entities'
import { useWork, WorkNote } from './work'

/** EntityPage edits an entity type, or with the name user the fields of users. */
export default function EntityPage() {
  const name = useParam('name')
  const ofUsers = name === 'user'
  const kind = ofUsers ? 'user_fields' as const : 'entity' as const
  const query = useQuery({
    queryKey: [...objectsKey(kind), name],
    queryFn: async ({ signal }) => {
      const found = await ask('GET config/{kind}/{name}', { params: { kind, name: ofUsers ? '-' : name }, signal })
      return { version: found.version, value: ofUsers ? { name: 'user', label: 'User', sharing: 'private', fields: (found.value ?? []) as FieldValue[] } : found.value as EntityValue }
    },
  })
  if (query.error) {
    const error = asError(query.error)
    if (error.isMissing) return <Page title={name}><Empty title={`There is no entity ${name}`} action={<Link className="btn" to={paths.entities()}>All entities</Link>}>It was removed, or never made.</Empty></Page>
    return <Page title={name}><ErrorState what="The entity could not be loaded." error={error} onRetry={() => { void query.refetch() }} /></Page>
  }
  if (!query.data) return <Page title={name}><Skeleton label="Loading the entity" /></Page>
  return <Editor key={name} name={name} ofUsers={ofUsers} stored={query.data.value} version={query.data.version} reload={() => { void query.refetch() }} />
}

function Editor({ name, ofUsers, stored, version, reload }: { name: string; ofUsers: boolean; stored: EntityValue; version: string; reload: () => void }) {
  const kinds = useKinds()
  const entities = useQuery({ queryKey: ['entities'], queryFn: ({ signal }) => ask('GET entities', { signal }) })
  const work = useWork()
  const client = useQueryClient()
  const go = useGo()
  const [open, setOpen] = useUrlValue('field')
  const [removing, setRemoving] = useState(false)
  const draft = useDraft<EntityEdit>(`entity/${name}`, editOf(stored), version)
  const review = useReview(ofUsers ? 'Fields of users saved' : `Entity ${name} saved`)
  const edit = draft.value
  const count = changes(stored, edit)
  const line: Gives<'GET entities'>[number] | undefined = entities.data?.find((e) => e.name === name)
  const types = (ofUsers ? memberOf(kinds.data, 'user_fields', 'type') : memberOf(kinds.data, 'entity', 'fields', 'type'))?.values ?? []
  const sharingMember = memberOf(kinds.data, 'entity', 'sharing')
  const sharing = sharingMember?.values ?? ['private', 'public_read', 'public_read_write']
  const byParent = JSON.stringify(sharingMember ?? '').includes('controlled_by')
  const setRows = (rows: FieldRow[]) => { review.clear(); draft.set({ ...edit, rows }) }
  const editsOf = (against: string): Edit[] => ofUsers
    ? [{ kind: 'user_fields', value: fieldsOf(edit.rows), against }]
    : [{ kind: 'entity', name, value: valueOf(stored, edit), against }]
  const save = (against: string) => { review.start(editsOf(against), () => { draft.discard(); setOpen(undefined); reload(); void client.invalidateQueries({ queryKey: ['entities'] }) }) }
  const conflict = review.error?.conflict
  const theirs = conflict?.stored as EntityValue | FieldValue[] | null | undefined
  const theirVersion = review.error?.details['version']
  const about = (index: number): Record<string, string> => Object.fromEntries(review.problems.flatMap((p) => { const at = problemOf(p.path); return at && at.field === index ? [[at.member, p.message]] : [] }))
  const ofKeep = review.problems.find((p) => p.path.endsWith('keep'))
  const elsewhere = review.problems.filter((p) => p !== ofKeep && problemOf(p.path) === undefined)

  return (
    <Page title={ofUsers ? 'Fields of users' : name} flush
      count={<>{edit.rows.length === 1 ? '1 field' : `${edit.rows.length} fields`}{line?.records ? <>, <Link to={paths.entity(name)}>{countWords(line.records.count, line.records.more)} {line.records.count === 1 ? 'record' : 'records'}</Link></> : null}</>}
      hint={ofUsers ? 'What is kept of each user besides name, e-mail and language.' : undefined}
      acts={<>
        {!ofUsers && <Button kind="danger" icon={<IconTrash size={16} stroke={1.7} aria-hidden />} busy={removing && review.busy} onClick={() => { setRemoving(true); review.start([{ kind: 'entity', name, value: null, against: version }], () => { draft.discard(); go(paths.entities()) }) }}>Remove entity</Button>}
        <Button icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { const row = newRow(edit.rows, crypto.randomUUID()); setRows([...edit.rows, row]); setOpen(row.key) }}>Add field</Button>
      </>}>
      <div className="pad">
        <WorkNote work={work.data} />
        {draft.restored && draft.dirty && <Note>Your edit from before is here, unsaved.</Note>}
        {conflict && typeof theirVersion === 'string' && <ConflictView what={ofUsers ? 'the fields of users' : `entity ${name}`} theirs={byName(asEntity(theirs, edit.base))} yours={byName(valueOf(stored, edit))} busy={review.busy}
          onMerge={() => { review.clear(); draft.set(merged(asEntity(theirs, edit.base), edit)); draft.rebase(theirVersion); reload() }}
          onTakeTheirs={() => { review.clear(); draft.discard(); reload() }} onSaveMine={() => { draft.rebase(theirVersion); save(theirVersion) }} />}
        {elsewhere.map((p, i) => <Note key={i} kind="bad">{p.message}</Note>)}
        {!conflict && review.problems.length === 0 && <ActionError error={review.error} />}
        {!ofUsers && (
          <div className="cfg-form">
            <TextField label="Label" value={edit.label} onChange={(label) => { draft.set({ ...edit, label }) }} />
            <SelectField label="Default for others" help="What staff may do with records of others, beside roles, shares and rules" value={typeof edit.sharing === 'string' ? edit.sharing : 'controlled'}
              options={[...sharing.map((value) => ({ value, label: sharingWords(value) })), ...(byParent ? referenceFields(edit) : []).map((f) => ({ value: `by ${f}`, label: `as the record in ${f}` })), ...(typeof edit.sharing === 'string' ? [] : [{ value: 'controlled', label: controlledWords(edit.sharing) }])]}
              onChange={(value) => { if (value && value !== 'controlled') draft.set({ ...edit, sharing: value.startsWith('by ') ? { controlled_by: value.slice(3) } : value }) }} />
            <TextField label="Keep records for" placeholder="ever" help="Days, as 90d: records are deleted so long after they were created, with what is below them" error={ofKeep?.message}
              value={edit.keep ?? stored.keep ?? ''} onChange={(keep) => { review.clear(); draft.set({ ...edit, keep }) }} />
          </div>
        )}
      </div>
      <DataTable<FieldRow> label="Fields" rows={edit.rows} rowKey={(row) => row.key} expanded={open} onOpen={(row) => { setOpen(row.key === open ? undefined : row.key) }}
        detail={(row) => {
          const at = edit.rows.indexOf(row)
          return <FieldForm row={row} types={types} entities={[...(entities.data ?? []).map((e) => e.name), ...(ofUsers ? [] : ['user'])]} ofUsers={ofUsers} problems={about(at)}
            onChange={(value) => { setRows(edit.rows.map((one) => (one === row ? { ...one, value } : one))) }}
            onRemove={() => { setOpen(undefined); setRows(edit.rows.filter((one) => one !== row)) }}
            onMove={(by) => { const to = at + by; if (to < 0 || to >= edit.rows.length) return; const rows = [...edit.rows]; rows.splice(at, 1); rows.splice(to, 0, row); setRows(rows) }} />
        }}
        empty={<Empty title={ofUsers ? 'Users have no fields of their own yet' : `${name} has no fields yet`}>A field has a name in the API and a type. Add the first one.</Empty>}
        columns={[
          { key: 'name', head: 'Field', narrow: 'title', cell: (row) => { const Icon = iconOf(row.value.type); return <span className="row"><Icon size={16} stroke={1.7} aria-hidden /><b className="mono">{row.value.name}</b>{row.was === '' ? <span className="chip warn">new</span> : row.was !== row.value.name ? <span className="chip warn">was {row.was}</span> : null}</span> } },
          { key: 'type', head: 'Type', width: 140, narrow: 'end', cell: (row) => row.value.type },
          { key: 'of', head: 'Takes', narrow: 'sub', cell: (row) => takesOptions(row.value.type) ? (row.value.options ?? []).join(', ') : refers(row.value.type) ? <span className="mono">{row.value.entity ?? 'choose an entity'}</span> : '' },
          { key: 'flags', head: 'Is', width: 260, cell: (row) => flags(row.value).join(', ') },
        ]} />
      <SaveBar count={count} what="What it costs is shown before it is saved." busy={review.busy} error={undefined} onSave={() => { setRemoving(false); save(draft.against) }} onDiscard={() => { review.clear(); draft.discard() }} action="Save changes" />
      {review.dialog}
      <LeaveGuard dirty={draft.dirty && count > 0} what="Your edit of the fields stays in this tab, unsaved." keep="Stay" leave="Discard and leave" onDiscard={draft.discard} />
    </Page>
  )
}

/** byName has the fields under their names, so that what differs is told field by field. */
function byName(value: EntityValue): Record<string, unknown> {
  return { label: value.label, sharing: value.sharing, keep: value.keep, fields: Object.fromEntries(value.fields.map((f) => [f.renamed_from ?? f.name, { ...f, renamed_from: undefined }])) }
}

/** asEntity is what is stored, of users too, where there are fields alone. */
function asEntity(theirs: EntityValue | FieldValue[] | null | undefined, base: EntityValue): EntityValue {
  if (theirs === null || theirs === undefined) return { ...base, fields: [] }
  return Array.isArray(theirs) ? { ...base, fields: theirs } : theirs
}

function flags(value: FieldValue): string[] { return ['required', 'unique', 'indexed', 'searchable', 'managed'].filter((name) => value[name] === true) }

function referenceFields(edit: EntityEdit): string[] {
  const chosen = controlledBy(edit.sharing)
  return edit.rows.filter((row) => row.value.type === 'reference' && row.value.name !== chosen).map((row) => row.value.name)
}

function controlledBy(sharing: unknown): string | undefined {
  const by = sharing !== null && typeof sharing === 'object' ? (sharing as { controlled_by?: unknown }).controlled_by : undefined
  return typeof by === 'string' ? by : undefined
}

function controlledWords(sharing: unknown): string { return `as the record in ${controlledBy(sharing) ?? 'its parent'}` }
