import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { ask, type Gives } from '../../api/client'
import { ApiError } from '../../api/error'
import { ActionError } from '../../ui/confirm'
import { Note } from '../../ui/states'
import { countWords } from '../../ui/time'
import { toast } from '../../ui/toast'

export type Work = Gives<'GET config/work'>

/** useWork follows the tenant's last long change: each second while it goes on. When it ends, what it touched is loaded anew. */
export function useWork(enabled = true) {
  const client = useQueryClient()
  const was = useRef<string>(undefined)
  const query = useQuery({
    queryKey: ['work'], enabled, queryFn: ({ signal }) => ask('GET config/work', { signal }),
    refetchInterval: (q) => (q.state.data?.state === 'running' || q.state.data?.other ? 1000 : false),
  })
  const state = query.data?.state
  const now = query.data && `${query.data.id ?? ''} ${query.data.state}`
  useEffect(() => {
    if (now === undefined) return
    if (was.current !== undefined && was.current !== now && state !== 'running') {
      for (const key of ['config', 'entities', 'history', 'names', 'users']) void client.invalidateQueries({ queryKey: [key] })
      if (state === 'done') toast.show({ text: 'The change is in force' })
    }
    was.current = now
  }, [now, state, client])
  return query
}

/** WorkNote says how far a long change has come, or how it ended if that was not well. */
export function WorkNote({ work }: { work: Work | undefined }) {
  if (!work || work.state === 'none' || work.state === 'done') {
    return work?.other ? <Note kind="warn"><b>A change is being made ready by a command</b>: {work.entity ? <>entity <code>{work.entity}</code>, </> : null}{work.percent} %. Readers see the old state until it ends.</Note> : null
  }
  if (work.state === 'running') {
    return (
      <Note kind="warn">
        <b>{work.mine ? 'Your change' : `A change by ${work.who ?? 'somebody'}`} is being made ready</b>: {work.entity ? <>entity <code>{work.entity}</code>, </> : null}
        {work.records && work.records.total > 0 ? `${countWords(work.records.done)} of ${countWords(work.records.total)} records` : `${work.percent} %`}. Reads and writes go on; readers see the old state until it ends. This page can be left.
        <progress className="cfg-progress" max={100} value={work.percent} aria-label="Records looked at" />
      </Note>
    )
  }
  if (work.state === 'stopped') {
    return <Note kind="bad"><b>The last change stopped when its server ended</b>. Nothing was changed. Apply it again: it goes on where it stopped.</Note>
  }
  if (!work.mine || !work.error) return null
  return <Note kind="bad"><b>The last change was refused</b>. Nothing was changed.<ActionError error={new ApiError({ status: 409, code: work.error.code, message: work.error.message })} /></Note>
}
