import { useState, type ReactNode } from 'react'
import { asError, type ApiError } from '../api/error'
import { ConflictView } from '../ui/conflict'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { countWords } from '../ui/time'
import { toast } from '../ui/toast'
import { planOf, problemsOf, useSave, type Applied, type Edit, type Plan, type Problem } from './objects'

/** A change on its way: planned, asked about where it takes something from somebody, and made. */
export interface Change {
  /** start plans the edits; it makes them at once when the plan takes nothing from anybody, else it asks first. */
  start: (edits: readonly Edit[], done: (applied: Applied) => void) => void
  /** confirmed makes edits that the user was asked about already. */
  confirmed: (edits: readonly Edit[], done: (applied: Applied) => void) => void
  busy: boolean
  error: ApiError | undefined
  problems: readonly Problem[]
  clear: () => void
  /** dialog is drawn by the page: the question before a change that takes something, or both sides of a conflict. */
  dialog: ReactNode
}

interface Asked { edits: readonly Edit[]; plan: Plan; done: (applied: Applied) => void }

/** useChange makes edits of configuration. what names the object in words; said is the toast after it: "role sales saved". */
export function useChange(what: string, said: string): Change {
  const save = useSave()
  const [planning, setPlanning] = useState(false)
  const [error, setError] = useState<ApiError>()
  const [asked, setAsked] = useState<Asked>()
  const [last, setLast] = useState<Omit<Asked, 'plan'>>()
  const make = (edits: readonly Edit[], done: (applied: Applied) => void) => {
    save.mutate(edits, {
      onSuccess: (applied, stayed) => {
        setAsked(undefined)
        toast.show({ text: applied.work ? `${said}: it goes on while records are looked at` : said })
        if (stayed) done(applied)
      },
      onError: (thrown) => { setAsked(undefined); setError(thrown) },
    })
  }
  const start = (edits: readonly Edit[], done: (applied: Applied) => void) => {
    setError(undefined)
    setLast({ edits, done })
    setPlanning(true)
    planOf(edits).then((plan) => {
      if (takes(plan)) setAsked({ edits, plan, done })
      else make(edits, done)
    }, (thrown: unknown) => { setError(asError(thrown)) }).finally(() => { setPlanning(false) })
  }
  const conflict = error?.conflict
  const over = () => {
    const version = error?.details['version']
    if (last && typeof version === 'string') start(last.edits.map((e) => (e.against === undefined ? e : { ...e, against: version })), last.done)
  }
  const confirmed = (edits: readonly Edit[], done: (applied: Applied) => void) => {
    setError(undefined)
    setLast({ edits, done })
    make(edits, done)
  }
  return {
    start, confirmed, busy: planning || save.isPending, error: conflict ? undefined : error, problems: problemsOf(error), clear: () => { setError(undefined) },
    dialog: <>
      {asked && <Takes plan={asked.plan} what={what} busy={save.isPending} onKeep={() => { setAsked(undefined) }} onGo={() => { make(asked.edits, asked.done) }} />}
      {conflict && <Dialog open width={640} title="Changed meanwhile" onClose={() => { setError(undefined) }}>
        <ConflictView what={what} theirs={conflict.stored} yours={conflict.asked} busy={save.isPending} onTakeTheirs={() => { setError(undefined); window.location.reload() }} onSaveMine={over} />
      </Dialog>}
    </>,
  }
}

/** takes reports whether a plan takes something from somebody, or keeps a field's values out of reach. */
export function takes(plan: Plan): boolean {
  const { losing, keys, endpoints, fields } = plan.effect
  return losing.count + keys.count + endpoints.count > 0 || fields.length > 0 || plan.gone.length > 0
}

function namesOf(of: { count: number; names?: string[] }): string {
  const names = of.names ?? []
  return names.join(', ') + (of.count > names.length ? ` and ${of.count - names.length} more` : '')
}

function Takes({ plan, what, busy, onKeep, onGo }: { plan: Plan; what: string; busy: boolean; onKeep: () => void; onGo: () => void }) {
  const { losing, keys, endpoints, fields } = plan.effect
  const parts: [words: (n: number) => string, of: { count: number; names?: string[] }][] = [
    [(n) => (n === 1 ? '1 user may do less' : `${n} users may do less`), losing],
    [(n) => (n === 1 ? '1 API key stops' : `${n} API keys stop`), keys],
    [(n) => (n === 1 ? '1 custom endpoint stops for its callers' : `${n} custom endpoints stop for their callers`), endpoints],
  ]
  return (
    <Dialog open title={`Change ${what}`} onClose={onKeep} width={520}>
      <div className="second says">
        {parts.filter(([, of]) => of.count > 0).map(([words, of]) => <p key={words(2)}><b>{words(of.count)}</b>: <span className="mono">{namesOf(of)}</span></p>)}
        {fields.map((f) => <p key={`${f.entity}.${f.field}`}><b className="mono">{f.entity || 'user'}.{f.field}</b> goes: {f.hidden ? 'some' : countWords(f.holding)} of {countWords(f.of)} hold a value, which is kept and comes back with the field.</p>)}
        {plan.gone.map((line) => <p key={line}>{line}</p>)}
      </div>
      <div className="dialogacts"><Button small onClick={onKeep} data-autofocus>Keep it as it is</Button><Button small kind="bad" busy={busy} onClick={onGo}>Change it</Button></div>
    </Dialog>
  )
}
