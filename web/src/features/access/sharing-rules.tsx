import { IconPlus } from '@tabler/icons-react'
import { asError } from '../../api/error'
import { useObjects, type Stored } from '../../app/objects'
import { Button } from '../../ui/button'
import { Drawer, useDrawer } from '../../ui/drawer'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable, type Column } from '../../ui/table'
import { useUrlValue } from '../../ui/url'
import { RuleDrawer } from './rule-drawer'
import { whichWords, whomWords, type RuleValue } from './rules'

const columns: readonly Column<Stored<RuleValue>>[] = [
  { key: 'entity', head: 'Entity', cell: (r) => <b className="med mono">{r.value.entity}</b>, width: 180, narrow: 'title' },
  { key: 'which', head: 'Which records', cell: (r) => <span className="trunc">{whichWords(r.value)}</span>, narrow: 'sub' },
  { key: 'whom', head: 'Shared with', cell: (r) => <span className="trunc">→ {whomWords(r.value)}</span>, width: 240, narrow: 'subend' },
  { key: 'access', head: 'Access', cell: (r) => r.value.access, width: 110, narrow: 'end' },
]

/** Sharing rules: standing rules that open records beside ownership, roles and single shares. */
export default function SharingRules() {
  const rules = useObjects<RuleValue>('sharing_rule')
  const drawer = useDrawer('row')
  const [adding, setAdding] = useUrlValue('new')
  const open = rules.data?.find((r) => r.name === drawer.key)
  const add = <Button kind="main" icon={<IconPlus size={16} stroke={1.7} aria-hidden />} onClick={() => { setAdding('rule', { push: true }) }}>Add sharing rule</Button>
  return (
    <Page title="Sharing rules" flush count={rules.data && String(rules.data.length)} hint="Which records a role, your staff or external users have beside their own. What may be done with them, permission sets say." acts={add}>
      <DataTable label="Sharing rules" columns={columns} rows={rules.data} rowKey={(r) => r.name} onOpen={(r) => { drawer.open(r.name) }} selected={drawer.key} loading={rules.isFetching}
        error={rules.error ? asError(rules.error) : undefined} what="The sharing rules could not be loaded." onRetry={() => void rules.refetch()}
        empty={<Empty title="No sharing rules yet" action={add}>A rule opens many records at once: what sales owns to support, what is won to finance, a company’s orders to its customers.</Empty>} />
      {adding !== undefined && <RuleDrawer key="new" onClose={() => { setAdding(undefined) }} onSaved={(name) => { setAdding(undefined); if (name) drawer.open(name) }} />}
      {adding === undefined && drawer.key !== undefined && rules.data && !open && <Drawer title="Sharing rule" label="Sharing rule" onClose={drawer.close}><Empty title="There is no such sharing rule">It was removed, or changed: a rule is named by what it says.</Empty></Drawer>}
      {adding === undefined && open && <RuleDrawer key={open.name} rule={open} onClose={drawer.close} onSaved={drawer.close} />}
    </Page>
  )
}
