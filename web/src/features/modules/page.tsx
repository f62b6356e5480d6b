import { IconTrash } from '@tabler/icons-react'
import { useMemo, useState } from 'react'
import { ObjectHistory } from '../../app/build/history'
import { absent, problemsOf, useObject, useObjects, useSave, type ComponentValue, type ModuleValue } from '../../app/build/objects'
import { paths } from '../../app/paths'
import { asError } from '../../api/error'
import { Button } from '../../ui/button'
import { CodeEditor } from '../../ui/code-editor'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { ConflictView } from '../../ui/conflict'
import { useDraft } from '../../ui/drafts'
import { Tabs } from '../../ui/drawer'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { comboWords, useShortcut } from '../../ui/shortcuts'
import { Empty, ErrorState, Note, Waiting } from '../../ui/states'
import { toast } from '../../ui/toast'
import { LeaveGuard } from '../../ui/unsaved'
import { useGo, useParam, useUrlValue } from '../../ui/url'
import { importersOf } from './imports'
import '../../app/build/build.css'

const fresh: ModuleValue = { source: 'export function total(lines) {\n  return lines.reduce((sum, line) => sum + line.amount, 0)\n}\n' }

/** One module: its code, and who imports it. */
export default function ModulePage() {
  const name = useParam('name')
  const [isNew] = useUrlValue('new')
  const stored = useObject<ModuleValue>('module', name)
  if (stored.error) return <Page title={name}><ErrorState what={`The module ${name} could not be loaded.`} error={asError(stored.error)} onRetry={() => void stored.refetch()} /></Page>
  if (stored.data === undefined) return <Waiting />
  if (stored.data === null && !isNew) {
    return <Page title={name}><Empty title={`There is no module ${name}`} action={<Link className="btn" to={`${paths.modules(name)}?new=1`}>Make it</Link>}>It was removed, or never saved.</Empty></Page>
  }
  return <Editor key={name} name={name} stored={stored.data?.value ?? fresh} version={stored.data?.version ?? absent} />
}

function Editor({ name, stored, version }: { name: string; stored: ModuleValue; version: string }) {
  const draft = useDraft<ModuleValue>(`module/${name}`, stored, version)
  const isNew = version === absent
  const save = useSave()
  const go = useGo()
  const [removing, setRemoving] = useState(false)
  const modules = useObjects<ModuleValue>('module')
  const components = useObjects<ComponentValue>('logic_component')
  const importers = useMemo(() => importersOf(components.data ?? [], modules.data ?? []).get(name) ?? [], [components.data, modules.data, name])
  const marks = useMemo(() => problemsOf(save.error ?? undefined).filter((p) => p.path === 'source' && p.line > 0).slice(0, 1), [save.error])
  const changed = draft.dirty || isNew
  const store = (against: string) => { save.mutate([{ kind: 'module', name, value: draft.value, against }], { onSuccess: () => { draft.discard(); save.reset(); toast.show({ text: `${name} is saved` }) } }) }
  useShortcut('mod+s', 'Save', () => { if (changed && !save.isPending) store(draft.against) })
  const conflict = save.error?.status === 409 || (draft.stale && !save.isPending)
  return (
    <Page title={name} flush count={isNew ? <span className="chip warn">not saved yet</span> : draft.dirty ? <span className="chip warn">unsaved changes</span> : undefined}
      acts={<>
        {draft.dirty && <Button kind="quiet" onClick={draft.discard}>Discard</Button>}
        {!isNew && <Button kind="quiet" icon={<IconTrash size={16} stroke={1.7} aria-hidden />} onClick={() => { setRemoving(true) }}>Delete</Button>}
        <Button kind="main" disabled={!changed} busy={save.isPending} onClick={() => { store(draft.against) }}>Save<kbd className="on-a">{comboWords('mod+s')}</kbd></Button>
      </>}>
      <LeaveGuard dirty={draft.dirty} what={`The changes to ${name} are not saved. They stay in this browser until it is closed.`} leave="Leave" />
      {draft.restored && draft.dirty && <Note kind="warn" action={<Button small onClick={draft.discard}>Discard them</Button>}>These are changes of yours that were not saved.</Note>}
      {conflict && <ConflictView what={name} theirs={stored} yours={draft.value} onMerge={() => { draft.rebase(version); save.reset() }} onTakeTheirs={() => { draft.discard(); save.reset() }} onSaveMine={() => { draft.rebase(version); store(version) }} busy={save.isPending} />}
      {save.error && save.error.status !== 409 && <div className="pad"><ActionError error={save.error} /></div>}
      <Tabs label={`Parts of ${name}`} name="tab" inner="tabfill" tabs={[
        { key: 'code', label: 'Code', content: () => <CodeEditor label={`Source of ${name}`} language="javascript" value={draft.value.source} onChange={(source) => { draft.set(() => ({ source })) }} problems={marks} fill /> },
        { key: 'uses', label: 'Imported by', n: importers.length, content: () => <div className="formpad">{importers.length === 0 ? <Empty title="Nothing imports it yet">A component does, with <code>{`import {…} from "${name}"`}</code>.</Empty> : <ul className="uses">{importers.map((one) => <li key={one.label}><Link to={one.to}>{one.label}</Link></li>)}</ul>}</div> },
        ...(isNew ? [] : [{ key: 'history', label: 'History', content: () => <div className="formpad"><ObjectHistory kind="module" name={name} /></div> }]),
      ]} />
      {removing && <ConfirmDestroy title={`Delete ${name}`} action={`Delete ${name}`} busy={save.isPending} error={save.error ?? undefined} onClose={() => { setRemoving(false); save.reset() }}
        onConfirm={() => { save.mutate([{ kind: 'module', name, value: null, against: version }], { onSuccess: (_, stayed) => { draft.discard(); if (stayed) go(paths.modules(), { replace: true }) } }) }}>
        {importers.length > 0 ? <>It is imported by {importers.map((one) => one.label).join(', ')}: they must stop importing it first.</> : <>Nothing imports it.</>}
      </ConfirmDestroy>}
    </Page>
  )
}
