import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ask } from '../../api/client'
import type { DataEntity, Explained, ExplainedWay, Opening, Reach } from '../../api/admin'
import { asError, type ApiError } from '../../api/error'
import { paths } from '../../app/paths'
import { useMay } from '../../app/session'
import { Button } from '../../ui/button'
import { ActionError } from '../../ui/confirm'
import { Gates, Verdict, type Gate } from '../../ui/gates'
import { Link } from '../../ui/link'
import { countWords } from '../../ui/time'
import { toast } from '../../ui/toast'
import { verdictOf } from './words'

/** WhyAnswer draws an explanation: the verdict, the gates, sharing's ways, and what would open it. */
export function WhyAnswer({ answer, entity, id, verb, field }: { answer: Explained; entity: DataEntity; id: string; verb: string; field: string | undefined }) {
  const at = answer.verbs.find((v) => v.verb === verb)
  if (!at) return null
  const of = field === undefined ? undefined : answer.fields.find((f) => f.name === field)
  const verdict = verdictOf(answer, entity.name, verb, field)
  const active = answer.user.active
  const sets = at.sets.map((s) => s ?? 'ownership of the tenant')
  const open = at.sets.length > 0
  const readable = answer.fields.filter((f) => (verb === 'update' ? f.edit : f.read).length > 0)
  const closed = answer.fields.filter((f) => !readable.includes(f)).map((f) => f.name)
  const word = verb === 'update' ? 'editable' : 'readable'
  const gates: Gate[] = [
    { state: active ? 'open' : 'shut', name: <><b>User</b> is {active ? 'active' : 'deactivated'}</>, why: <>{answer.user.type}{answer.user.role && <>, role {answer.user.role}</>}{answer.user.owner && ', owns the tenant'}</> },
    open
      ? { state: 'open', name: <><b>{sets.length > 1 ? 'Permission sets' : 'Permission set'}</b> {sets.join(', ')} {sets.length > 1 ? 'allow' : 'allows'} {entity.name}: {verb}</> }
      : { state: 'shut', name: <><b>No permission set</b> of the user allows {entity.name}: {verb}</>, why: answer.user.sets.length > 0 ? `The user has ${answer.user.sets.join(', ')}` : 'The user has none' },
    { state: at.reached ? 'open' : 'shut', name: <><b>Sharing</b> {at.reached ? 'opens this record' : `opens this record for ${verb} in none of its ways`}</>, more: <Ways answer={answer} verb={verb} /> },
  ]
  if (verb !== 'delete') {
    const reached = at.allowed
    gates.push(of
      ? { state: !reached ? 'none' : verdict.fieldOpen ? 'open' : 'shut', name: <><b>Field</b> <code>{of.name}</code> {verdict.fieldOpen ? `is ${word}` : `is not ${word}`}</>, why: verdict.fieldOpen ? (verb === 'update' ? of.edit : of.read).map((s) => s ?? 'ownership of the tenant').join(', ') : 'no permission set of the user opens it' }
      : { state: !reached ? 'none' : closed.length === 0 ? 'open' : 'part', name: <><b>Fields</b> {readable.length} of {answer.fields.length} {reached ? 'are' : 'would be'} {word}{closed.length > 0 && <>, not <code>{closed.slice(0, 6).join(', ')}{closed.length > 6 && ` and ${closed.length - 6} more`}</code></>}</> })
  }
  return (
    <div className="whyanswer">
      <Verdict yes={verdict.yes} why={verdict.why}>{verdict.text}</Verdict>
      <Gates gates={gates} />
      {answer.openings.length > 0 && (
        <section aria-label="What would open it">
          <h2 className="t">What would open it</h2>
          {answer.openings.map((o, i) => <OpeningLine key={i} opening={o} answer={answer} entity={entity} id={id} />)}
        </section>
      )}
    </div>
  )
}

const wayWords: Record<string, string> = {
  owner: 'Owner', hierarchy: 'Role', share_with_user: 'Share', share_with_role: 'Share with role', rule_by_owner_role: 'Rule by role', rule_by_value: 'Rule by value',
  rule_by_viewer: 'Rule by viewer', parent: 'Parent', default: 'Default', all_entity_access: 'All records', tenant_owner: 'Tenant owner', internal: 'Staff', self: 'Own row',
}

/** Ways lists each cause: what opens the record by it, or why it does not. A cause that is new to this page has its own name. */
function Ways({ answer, verb }: { answer: Explained; verb: string }) {
  return (
    <table className="ways">
      <tbody>
        {answer.ways.map((w) => {
          const opens = w.opens.includes(verb)
          return (
            <tr key={w.cause} className={opens ? 'opens' : w.near ? 'near' : ''}>
              <th scope="row">{wayWords[w.cause] ?? w.cause.replaceAll('_', ' ')}</th>
              <td>{wayText(w, verb)}</td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

function wayText(w: ExplainedWay, verb: string): string {
  const by = w.reasons.filter((r) => r.opens.includes(verb)).map((r) => r.text)
  if (by.length > 0) return by.join('; ') + (w.more > 0 ? `; and ${w.more} more` : '')
  if (w.reasons.length > 0) return `${w.reasons.map((r) => r.text).join('; ')}: for ${w.opens.join(', ')} alone`
  return w.closed ?? 'does not open it'
}

/** reachWords says how much a change opens. */
export function reachWords(reach: Reach): string {
  const one = (n: number, more: boolean, noun: string) => `${countWords(n, more)} ${noun}${n === 1 && !more ? '' : 's'}`
  if (reach.records.count === 0 && !reach.records.more) return one(reach.users.count, reach.users.more, 'user')
  return `${one(reach.records.count, reach.records.more, 'record')}, ${one(reach.users.count, reach.users.more, 'user')}`
}

const wide = (reach: Reach) => reach.records.count * Math.max(1, reach.users.count) > 50 || reach.records.more || reach.users.more

function OpeningLine({ opening, answer, entity, id }: { opening: Opening; answer: Explained; entity: DataEntity; id: string }) {
  const client = useQueryClient()
  const permissions = useMay(['manage_permissions'])
  const users = useMay(['manage_users'])
  const share = useMutation<unknown, ApiError>({
    mutationFn: () => ask('POST data/{entity}/{id}/shares', { params: { entity: entity.name, id }, body: { user: answer.user.id, access: opening.access === 'edit' ? 'edit' : 'read' } }),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['data', 'why', entity.name, id] })
      void client.invalidateQueries({ queryKey: ['data', 'shares', entity.name, id] })
      void client.invalidateQueries({ queryKey: ['data', 'seers', entity.name, id] })
      toast.show({ text: <>Shared with {answer.user.name || answer.user.email}</> })
    },
  })
  const user = answer.user.name || answer.user.email
  return (
    <div className="opt">
      <div className="grow">
        {opening.text.replace('the user', user)}
        <div className={`s12 ${wide(opening.reach) ? 'warnword' : 'second'}`}>{wide(opening.reach) ? 'Opens ' : ''}{reachWords(opening.reach)}</div>
        {share.error && <ActionError error={asError(share.error)} />}
      </div>
      {opening.kind === 'share' && opening.may && <Button small busy={share.isPending} onClick={() => { share.mutate() }}>Share ({opening.access})</Button>}
      {opening.kind === 'rule' && permissions && <Link className="btn s" to={paths.sharingRules()}>Sharing rules</Link>}
      {(opening.kind === 'role' || opening.kind === 'permission_set') && users && <Link className="btn s" to={paths.users(answer.user.id)}>User</Link>}
    </div>
  )
}
