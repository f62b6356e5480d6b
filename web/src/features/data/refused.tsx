import type { ApiError } from '../../api/error'
import { Arch } from '../../ui/arch'
import { Button } from '../../ui/button'
import { IdChip } from '../../ui/copy'

/** Refused stands in place of a list that the API does not give as it is asked: it says so in the API's words, and offers the way back where the order is to blame. */
export function Refused({ error, onNewest, onFirst }: { error: ApiError; onNewest: () => void; onFirst: () => void }) {
  const broad = error.code === 'QUERY_TOO_BROAD'
  // Of an order that takes too much the answer names no fields, of conditions it does.
  const order = 'sort' in error.fields || (broad && Object.keys(error.fields).length === 0)
  const page = 'cursor' in error.fields
  return (
    <div className="empty" role="alert">
      <Arch state="shut" size={22} />
      <b>{broad ? 'Too many records to look through' : page ? 'The list has no such page' : `The list cannot be ${order ? 'sorted' : 'search' in error.fields ? 'searched' : 'filtered'} like this`}</b>
      <p><span className="mono">{error.status} {error.code}</span>: {[error.message, order && error.fields['sort'], page && error.fields['cursor']].filter(Boolean).join(': ')}.</p>
      {order && <Button onClick={onNewest}>Newest first</Button>}
      {page && <Button onClick={onFirst}>First page</Button>}
      {error.requestId && <IdChip id={error.requestId} label="request id" />}
    </div>
  )
}
