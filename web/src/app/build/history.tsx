import { useQuery } from '@tanstack/react-query'
import { askPage, type Gives } from '../../api/client'
import { asError } from '../../api/error'
import { CodeDiff } from '../../ui/diff'
import { Link } from '../../ui/link'
import { Op } from '../../ui/plan'
import { Empty, ErrorState, Skeleton } from '../../ui/states'
import { Time } from '../../ui/time'
import { paths } from '../paths'
import type { ObjectKind } from '../objects'

type Entry = Gives<'GET history'>[number]

const ops = { create: 'add', update: 'change', delete: 'remove' } as const

/** ObjectHistory lists the changes of one object, newest first, each with what differs. */
export function ObjectHistory({ kind, name }: { kind: ObjectKind; name: string }) {
  const query = useQuery({ queryKey: ['history', 'of', kind, name], queryFn: ({ signal }) => askPage('GET history', { query: { kind, name, limit: 30 }, signal }) })
  if (query.error) return <ErrorState what="The changes could not be loaded." error={asError(query.error)} onRetry={() => void query.refetch()} />
  if (!query.data) return <Skeleton rows={4} label="Loading the changes" />
  if (query.data.rows.length === 0) return <Empty title="No changes yet">Each save stands here with who made it, before and after.</Empty>
  return (
    <>
      <ol className="objhist" aria-label={`Changes of ${name}`}>{query.data.rows.map((entry) => (
        <li key={entry.id}>
          <div className="row wrap"><Op op={ops[entry.action as keyof typeof ops] ?? 'change'} /><Link to={paths.history(entry.id)}><Time at={entry.at} /></Link><b className="med">{entry.actor}</b>{entry.actedAs && <span className="second">as {entry.actedAs}</span>}<span className="second">{wordsOf(entry)}</span></div>
          {entry.action === 'update' && <div className="pane src"><CodeDiff before={sideOf(entry, 'before')} after={sideOf(entry, 'after')} /></div>}
        </li>
      ))}</ol>
      {query.data.meta.hasMore && <p className="top6"><Link to={`${paths.history()}?kind=${kind}&name=${encodeURIComponent(name)}`}>All its changes</Link></p>}
    </>
  )
}

function wordsOf(entry: Entry): string {
  if (entry.action === 'create') return 'made it'
  if (entry.action === 'delete') return 'removed it'
  return entry.differences.length === 1 ? `changed ${entry.differences[0]?.path ?? 'it'}` : `made ${entry.differences.length} differences`
}

/** sideOf writes one side of what differs, a path a line; text of several lines stands under its path. */
function sideOf(entry: Entry, side: 'before' | 'after'): string {
  return entry.differences.flatMap((d) => {
    const value = d[side]
    if (value === null || value === undefined) return []
    return [typeof value === 'string' && value.includes('\n') ? `${d.path}:\n${value}` : `${d.path}: ${typeof value === 'string' ? value : JSON.stringify(value)}`]
  }).join('\n')
}
