import { useState, type ReactNode } from 'react'
import { asError, type ApiError } from '../../api/error'
import { planOf, problemsOf, useSave, type Applied, type Edit, type Plan, type Problem } from '../../app/objects'
import { Button } from '../../ui/button'
import { Dialog } from '../../ui/dialog'
import { Note } from '../../ui/states'
import { PlanView } from '../../ui/plan'
import { toast } from '../../ui/toast'
import { looks, planGroups, weighty } from './plan-items'

/** A save on its way: planned, shown where that is worth a look, and made. */
export interface Review {
  start: (edits: readonly Edit[], done: (applied: Applied) => void) => void
  busy: boolean
  error: ApiError | undefined
  problems: readonly Problem[]
  clear: () => void
  dialog: ReactNode
}

/** useReview plans edits before they are made. said is the toast afterwards. */
export function useReview(said: string): Review {
  const save = useSave()
  const [planning, setPlanning] = useState(false)
  const [error, setError] = useState<ApiError>()
  const [asked, setAsked] = useState<{ edits: readonly Edit[]; plan: Plan; done: (applied: Applied) => void }>()
  const make = (edits: readonly Edit[], done: (applied: Applied) => void) => {
    save.mutate(edits, {
      onSuccess: (applied, stayed) => {
        setAsked(undefined)
        toast.show({ text: applied.work ? `${said}: records are looked at, it takes effect when that ends` : said })
        if (stayed) done(applied)
      },
      onError: (thrown) => { setAsked(undefined); setError(thrown) },
    })
  }
  const start = (edits: readonly Edit[], done: (applied: Applied) => void) => {
    setError(undefined)
    setPlanning(true)
    planOf(edits).then((plan) => { if (weighty(plan)) setAsked({ edits, plan, done }); else make(edits, done) }, (thrown: unknown) => { setError(asError(thrown)) })
      .finally(() => { setPlanning(false) })
  }
  const n = asked?.plan.changes.length ?? 0
  return {
    start, busy: planning || save.isPending, error, problems: problemsOf(error), clear: () => { setError(undefined) },
    dialog: asked && (
      <Dialog open width={720} title={n === 1 ? '1 change, before it is applied' : `${n} changes, before they are applied`} onClose={() => { setAsked(undefined) }}>
        {looks(asked.plan).map((line, i) => <Note key={i} kind="warn">{line}</Note>)}
        <PlanView groups={planGroups(asked.plan)} />
        <div className="dialogacts"><Button small onClick={() => { setAsked(undefined) }}>Go on editing</Button><Button small kind="main" busy={save.isPending} data-autofocus onClick={() => { make(asked.edits, asked.done) }}>{n === 1 ? 'Apply 1 change' : `Apply ${n} changes`}</Button></div>
      </Dialog>
    ),
  }
}
