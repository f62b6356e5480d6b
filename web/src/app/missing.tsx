import { Link } from '../ui/link'
import { Page } from '../ui/page'
import { Empty } from '../ui/states'
import { paths } from './paths'

/** Missing is shown for an address that leads nowhere. */
export function Missing() {
  return <Page title="No such page"><Empty title="Nothing is at this address" action={<Link className="btn" to={paths.overview()}>Go to the overview</Link>}>It may have been renamed or deleted, or the link was cut.</Empty></Page>
}
