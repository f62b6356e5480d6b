import { IconPlus } from '@tabler/icons-react'
import { useMay } from '../../app/session'
import { Button } from '../../ui/button'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { useUrlValue } from '../../ui/url'
import { NewUser } from './new-user'
import { PeopleList } from './people'

/** The tenant's staff. */
export default function Users() {
  const [adding, setAdding] = useUrlValue('new')
  const may = useMay(['manage_users'])
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setAdding('user', { push: true }) }}>Add user</Button>
  return (
    <Page title="Users" flush hint="Your staff. They sign in here, and keys act as them. End-users of your app are under External users." acts={may && add}>
      <PeopleList type="internal" noun="Users" empty={<Empty title="No staff yet" action={may && add}>Each person who works with this tenant has a user of their own.</Empty>} />
      {adding !== undefined && may && <NewUser type="internal" onClose={() => { setAdding(undefined) }} />}
    </Page>
  )
}
