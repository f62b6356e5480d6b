import { IconDownload, IconUpload } from '@tabler/icons-react'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { DataEntity, Failure, ImportedPart } from '../../api/admin'
import { asError, type ApiError } from '../../api/error'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { Drawer } from '../../ui/drawer'
import { CheckField } from '../../ui/field'
import { KeyValues } from '../../ui/list'
import { SelectField } from '../../ui/select'
import { save } from '../../ui/save'
import { Note } from '../../ui/states'
import { LeaveGuard } from '../../ui/unsaved'
import { formatOf, importFile, inputOf, Interrupted, sendTo, type From, type Standing } from './parts'

/** maxNamed is how many failures are kept; the list shows the first of them. */
const maxNamed = 1000
const maxShown = 100

const anew = 'none'

interface Outcome { at: Standing | undefined; checked: boolean; failures: readonly Failure[]; error?: ApiError; interrupted?: ImportedPart; stopped?: boolean }

/** ImportDrawer creates and changes records from a file. */
export function ImportDrawer({ entity, onClose }: { entity: DataEntity; onClose: () => void }) {
  const client = useQueryClient()
  const chooser = useRef<HTMLInputElement>(null)
  const stop = useRef<AbortController>(undefined)
  const [file, setFile] = useState<File>()
  const [by, setBy] = useState<string>(anew)
  const [guarded, setGuarded] = useState(false)
  const [running, setRunning] = useState<'check' | 'import'>()
  const [outcome, setOutcome] = useState<Outcome>()
  useEffect(() => () => { stop.current?.abort() }, [])

  const choose = (chosen: File | undefined) => { if (chosen) { setFile(chosen); setOutcome(undefined) } }
  const begin = (what: 'check' | 'import', from: From) => {
    if (!file || running) return
    const abort = new AbortController()
    stop.current = abort
    const goesOn = typeof from === 'object'
    const failures: Failure[] = goesOn ? [...(outcome?.failures ?? [])] : []
    let at: Standing | undefined = goesOn ? outcome?.at : undefined
    setRunning(what)
    setOutcome({ at, checked: what === 'check', failures })
    const format = formatOf(file.name)
    const how = { format, ...(by === anew ? {} : { by }), ...(guarded && format === 'csv' ? { spreadsheet: true } : {}), ...(what === 'check' ? { dryRun: true } : {}) }
    const told = (standing: Standing, more: readonly Failure[]) => {
      at = standing
      for (const one of more) if (failures.length < maxNamed) failures.push(one)
      setOutcome({ at, checked: what === 'check', failures: [...failures] })
    }
    importFile(inputOf(file), how, from, sendTo(entity.name), told, abort.signal)
      .then((end) => { setOutcome({ at: end, checked: what === 'check', failures: [...failures] }) })
      .catch((thrown: unknown) => {
        const rest = abort.signal.aborted ? { stopped: true } : thrown instanceof Interrupted ? { interrupted: thrown.at } : { error: asError(thrown) }
        setOutcome({ at, checked: what === 'check', failures: [...failures], ...rest })
      })
      .finally(() => {
        setRunning(undefined)
        if (what === 'check') return
        void client.invalidateQueries({ queryKey: ['data', 'list', entity.name] })
        void client.invalidateQueries({ queryKey: ['data', 'count', entity.name] })
      })
  }
  const at = outcome?.at
  const unfinished = at !== undefined && !at.finished && !outcome?.checked && (outcome?.error !== undefined || outcome?.stopped === true)
  const found = entity.fields.filter((f) => f.unique).map((f) => ({ value: f.name, label: `found by ${f.name}` }))
  return (
    <Drawer title={`Import ${entity.name}`} label={`Import ${entity.name}`} onClose={onClose}
      footer={running
        ? <><Button onClick={() => { stop.current?.abort() }}>Stop</Button><span className="second s12">Closing this stops it, too. It can be continued.</span></>
        : unfinished
          ? <><Button kind="main" onClick={() => { begin('import', { at, run: at.run }) }}>Continue</Button><Button onClick={() => { begin('import', 'anew') }}>Begin anew</Button></>
          : <><Button kind="main" disabled={!file} onClick={() => { begin('import', 'front') }}>Import</Button><Button disabled={!file} onClick={() => { begin('check', 'front') }}>Check only</Button></>}>
      <div className="stack">
        <p className="second">A CSV with the names of fields in its first line, or NDJSON, one record a line, both in UTF-8. An export has this form.</p>
        <input ref={chooser} type="file" accept=".csv,.ndjson,.jsonl,.txt,text/csv,application/x-ndjson" className="hidden-words" tabIndex={-1} aria-label="File with records" onChange={(event) => { choose(event.target.files?.[0]); event.target.value = '' }} />
        <div className="row wrap">
          <Button icon={<IconUpload size={16} stroke={1.7} aria-hidden />} disabled={running !== undefined} onClick={() => { chooser.current?.click() }}>{file ? 'Choose another file' : 'Choose a file'}</Button>
          {file && <span className="mono trunc">{file.name}, {sizeOf(file.size)}</span>}
        </div>
        <SelectField label="Records that are there" value={by} disabled={running !== undefined} onChange={(value) => { setBy(value ?? anew); setOutcome(undefined) }}
          options={[{ value: anew, label: 'not looked for: each line is a new record' }, ...found, { value: 'id', label: 'found by id, none is new' }]}
          help="A record that is found gets the values of its line; one that has them already stays as it is." />
        {file && formatOf(file.name) === 'csv' && <CheckField label="The file was exported for a spreadsheet" help="Takes away the apostrophes before texts that begin with = + - @." checked={guarded} disabled={running !== undefined} onChange={setGuarded} />}
        {outcome && <Told outcome={outcome} running={running} name={file?.name ?? ''} />}
        {outcome?.interrupted && (
          <Note kind="warn" action={<div className="row"><Button small kind="main" onClick={() => { begin('import', { at: outcome.interrupted as ImportedPart }) }}>Continue</Button><Button small onClick={() => { begin('import', 'anew') }}>Begin anew</Button></div>}>
            An import of this file stopped behind line {(outcome.interrupted.line - 1).toLocaleString('en')}: {countsOf(outcome.interrupted)}; records were {outcome.interrupted.by ? `found by ${outcome.interrupted.by}` : 'not looked for'}. It continues there, in the same way, if the file is the same up to that line.
          </Note>
        )}
        {outcome?.error && <ActionError error={outcome.error} />}
      </div>
      <LeaveGuard dirty={running === 'import'} what="The import stops when you leave. It can be continued with the same file." leave="Leave and stop" />
    </Drawer>
  )
}

/** Told is how far an import has come, and what failed. */
function Told({ outcome: { at, checked, failures, stopped }, running, name }: { outcome: Outcome; running: string | undefined; name: string }) {
  const failed = at?.failed ?? 0
  const list = () => failures.map((f) => `line ${f.line}: ${f.reason}\n`).join('')
  return (
    <div className="stack" aria-live="polite">
      {running && <progress className="pg" max={Math.max(at?.size ?? 1, 1)} value={at?.offset ?? 0} aria-label="Part of the file that was read" />}
      {at && (
        <>
          {at.finished && <Note kind={failed > 0 ? 'warn' : undefined}>{checked ? 'Checked; nothing was kept.' : failed > 0 ? 'Imported, but for the lines that failed.' : 'Imported.'}{checked && ' Each part was checked against what is stored, not against the parts before it.'}</Note>}
          {stopped && <Note kind="warn">Stopped behind line {(at.line - 1).toLocaleString('en')}{checked ? '' : '; what stands up to there has had effect'}.</Note>}
          <KeyValues label="Records" items={[
            { name: checked ? 'would be created' : 'created', value: at.created.toLocaleString('en') }, { name: checked ? 'would be changed' : 'changed', value: at.updated.toLocaleString('en') },
            { name: 'as they were', value: at.unchanged.toLocaleString('en') }, { name: 'failed', value: failed.toLocaleString('en') },
          ]} />
          {at.notes.map((note) => <p key={note} className="second s12">{note}</p>)}
        </>
      )}
      {failures.length > 0 && (
        <section aria-label="Lines that failed">
          <ul className="failures">{failures.slice(0, maxShown).map((f) => <li key={f.line}><span className="mono">line {f.line}</span> {f.reason}</li>)}</ul>
          <div className="row wrap">
            {failures.length > maxShown && <span className="second s12">and {(failed - maxShown).toLocaleString('en')} more</span>}
            <Button small icon={<IconDownload size={14} stroke={1.7} aria-hidden />} onClick={() => { save(`${name}.failed.txt`, [list()], 'text/plain') }}>{failed > maxNamed ? `Download the first ${maxNamed.toLocaleString('en')}` : 'Download the list'}</Button>
          </div>
        </section>
      )}
    </div>
  )
}

const countsOf = (c: ImportedPart) => `${c.created.toLocaleString('en')} created, ${c.updated.toLocaleString('en')} changed, ${c.failed.toLocaleString('en')} failed`

function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}
