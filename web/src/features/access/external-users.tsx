import { IconPlus } from '@tabler/icons-react'
import { useMay } from '../../app/session'
import { Button } from '../../ui/button'
import { Tabs } from '../../ui/drawer'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { useUrl, useUrlValue } from '../../ui/url'
import { ExternalSettings } from './external-settings'
import { NewUser } from './new-user'
import { PeopleList } from './people'

/** End-users of the tenant's own app: who they are, and how they register and sign in. */
export default function ExternalUsers() {
  const manages = useMay(['manage_users'])
  const people = useMay(['manage_users', 'can_manage_external_users'])
  const settings = useMay(['tenant_settings'])
  const [url] = useUrl()
  const [adding, setAdding] = useUrlValue('new')
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setAdding('user', { push: true }) }}>Add external user</Button>
  const list = { key: 'people', label: 'Users', content: () => <PeopleList type="external" noun="External users" empty={<Empty title="Nobody has registered yet" action={manages && add}>End-users of your app register at <code>POST /public/v1/auth/register</code> once External Identity is on.</Empty>} /> }
  const tabs = [...(people ? [list] : []), ...(settings ? [{ key: 'settings', label: 'Settings', content: () => <ExternalSettings /> }] : [])]
  const onList = people && url['view'] !== 'settings'
  return (
    <Page title="External users" flush hint="End-users of your own app: they register and sign in there, with External Identity, and never here." acts={onList && manages && add}>
      <div className={`tabbed ${onList ? 'flush' : ''}`}><Tabs tabs={tabs} name="view" label="External users" inner={onList ? 'tabbody fill' : 'tabbody pad'} /></div>
      {adding !== undefined && manages && <NewUser type="external" onClose={() => { setAdding(undefined) }} />}
    </Page>
  )
}
