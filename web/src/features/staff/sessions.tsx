import { askPage } from '../../api/client'
import type { ListMeta, SessionInfo } from '../../api/admin'
import { Page } from '../../ui/page'
import { usePaged } from '../../ui/paged'
import { Pager } from '../../ui/table'
import { SessionTable } from './session-table'

export default function SessionsPage() {
  const list = usePaged<SessionInfo, ListMeta>({ key: ['sessions'], load: (cursor, signal) => askPage('GET sessions', { query: cursor === undefined ? {} : { cursor }, signal }) })
  return (
    <Page title="Sessions" hint="Staff who are signed in to the console. To end a session takes effect with its next request." flush>
      <SessionTable rows={list.rows} error={list.error} loading={list.loading} onRetry={() => void list.query.refetch()} footer={<Pager {...list.pager} />} />
    </Page>
  )
}
