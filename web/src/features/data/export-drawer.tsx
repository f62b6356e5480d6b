import { useEffect, useRef, useState } from 'react'
import { ask } from '../../api/client'
import type { DataEntity } from '../../api/admin'
import { ApiError, asError } from '../../api/error'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { Drawer } from '../../ui/drawer'
import { CheckField, Segmented } from '../../ui/field'
import { save } from '../../ui/save'
import { Note } from '../../ui/states'
import { LeaveGuard } from '../../ui/unsaved'
import { patiently } from './parts'

type Format = 'csv' | 'ndjson'

/** maxText is how much text a browser is asked to hold, in characters. */
const maxText = 400_000_000

interface Outcome { count: number; name?: string; error?: ApiError; stopped?: boolean }

/** ExportDrawer saves what a list has as a file. query is the list's: filters, search and order. */
export function ExportDrawer({ entity, query, filtered, onClose }: { entity: DataEntity; query: Record<string, string | undefined>; filtered: boolean; onClose: () => void }) {
  const stop = useRef<AbortController>(undefined)
  const [format, setFormat] = useState<Format>('csv')
  const [guarded, setGuarded] = useState(false)
  const [running, setRunning] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>()
  useEffect(() => () => { stop.current?.abort() }, [])

  const begin = () => {
    const abort = new AbortController()
    stop.current = abort
    let count = 0
    setRunning(true)
    setOutcome({ count })
    collect(entity.name, { ...query, format, ...(guarded && format === 'csv' ? { spreadsheet: true } : {}) }, (n) => { count = n; setOutcome({ count }) }, abort.signal)
      .then((pages) => {
        const name = `${entity.name}.${format}`
        save(name, pages, format === 'csv' ? 'text/csv' : 'application/x-ndjson')
        setOutcome({ count, name })
      })
      .catch((thrown: unknown) => { setOutcome({ count, ...(abort.signal.aborted ? { stopped: true } : { error: asError(thrown) }) }) })
      .finally(() => { setRunning(false) })
  }
  return (
    <Drawer title={`Export ${entity.name}`} label={`Export ${entity.name}`} onClose={onClose}
      footer={running ? <Button onClick={() => { stop.current?.abort() }}>Stop</Button> : <Button kind="main" onClick={begin}>Export</Button>}>
      <div className="stack">
        <p className="second">{filtered ? 'The records that match the filters of the list, in its order.' : 'All records that you may see, in the order of the list.'} Fields that you may not read are left out.</p>
        <div className="row"><Segmented label="Format" value={format} options={[{ value: 'csv', label: 'CSV' }, { value: 'ndjson', label: 'NDJSON' }]} onChange={setFormat} /></div>
        {format === 'csv' && <CheckField label="For a spreadsheet" help="Begins texts that a spreadsheet would run as a formula with an apostrophe. An import takes it away again." checked={guarded} onChange={setGuarded} disabled={running} />}
        <div aria-live="polite">
          {outcome && !outcome.error && (
            <Note kind={outcome.stopped ? 'warn' : undefined}>
              {outcome.name ? `${outcome.count.toLocaleString('en')} records are in ${outcome.name}, in your downloads.` : outcome.stopped ? 'Stopped; no file was made.' : `${outcome.count.toLocaleString('en')} records so far`}
            </Note>
          )}
        </div>
        {outcome?.error && <ActionError error={outcome.error} />}
      </div>
      <LeaveGuard dirty={running} what="The export stops when you leave, and no file is made." leave="Leave and stop" />
    </Drawer>
  )
}

/** collect asks for page after page and gives their texts. */
async function collect(entity: string, query: Record<string, string | boolean | undefined>, told: (count: number) => void, signal: AbortSignal): Promise<string[]> {
  const pages: string[] = []
  let [count, size, cursor, columns] = [0, 0, undefined as string | undefined, '']
  for (;;) {
    const from = cursor
    const page = await patiently(() => ask('GET data/{entity}/export', { params: { entity }, query: { ...query, cursor: from }, signal }), signal)
    columns ||= page.columns.join()
    if (columns !== page.columns.join()) throw new ApiError({ status: 0, code: 'CONSOLE_ERROR', message: 'the fields changed meanwhile: export again' })
    size += page.text.length
    if (size > maxText) throw new ApiError({ status: 0, code: 'CONSOLE_ERROR', message: 'the records are too many for a browser: filter them, or use gatehouse records export' })
    pages.push(page.text)
    count += page.count
    told(count)
    if (page.next === null) return pages
    cursor = page.next
  }
}
