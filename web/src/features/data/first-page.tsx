import { useEffect } from 'react'
import { asError } from '../../api/error'
import { paths } from '../../app/paths'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { Empty, ErrorState, Waiting } from '../../ui/states'
import { useGo } from '../../ui/url'
import { useEntities } from './queries'

/** FirstPage goes to the first entity type. */
export default function FirstPage() {
  const go = useGo()
  const entities = useEntities()
  const first = entities.data?.list[0]?.name
  useEffect(() => { if (first) go(paths.entity(first), { replace: true }) }, [first, go])
  if (entities.error) return <Page title="Data"><ErrorState what="The entity types could not be loaded." error={asError(entities.error)} onRetry={() => void entities.refetch()} /></Page>
  if (entities.data && !first) {
    return (
      <Page title="Data">
        <Empty title="No records to see" action={<Link className="btn main1" to={paths.entities()}>Entities and fields</Link>}>
          Records are of an entity type, such as contact. There is none, or no permission set opens one to you.
        </Empty>
      </Page>
    )
  }
  return <Waiting />
}
