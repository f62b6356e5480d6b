import type { Begun } from '../../api/admin'
import { paths } from '../../app/paths'
import { Arch } from '../../ui/arch'
import { Link } from '../../ui/link'
import { Section } from '../../ui/list'

const steps: readonly { done: keyof Begun; title: string; text: string; to: string; words: string }[] = [
  { done: 'entities', title: 'Say what you keep', text: 'An entity is a kind of record, with its fields: contact, order.', to: paths.entities(), words: 'Make an entity' },
  { done: 'sets', title: 'Say who may do what', text: 'A permission set opens entities and fields to those who have it.', to: paths.permissionSets(), words: 'Make a permission set' },
  { done: 'apiOn', title: 'Switch the API on', text: 'Until then every call is answered 503.', to: paths.apiConfig(), words: 'Open API Config' },
  { done: 'keys', title: 'Make a key', text: 'A key acts as a user: it sees what that user sees.', to: `${paths.apiKeys()}?new=1`, words: 'Make a key' },
  { done: 'called', title: 'Make the first call', text: 'The key’s page has a line to paste; the audit log shows what became of it.', to: paths.apiReference(), words: 'Open the API reference' },
  { done: 'endpoints', title: 'Add an endpoint of your own', text: 'A function or a flow that a webhook or your app calls. It can wait.', to: paths.endpoints(), words: 'Make an endpoint' },
]

/** FirstSteps tell a new tenant what to do next; the first that is not done has the accent. */
export function FirstSteps({ begun }: { begun: Begun }) {
  const next = steps.find((s) => !begun[s.done])
  return (
    <Section title="First steps" right={<span className="muted">{steps.filter((s) => begun[s.done]).length} of {steps.length}</span>}>
      <ol className="steps">{steps.map((s) => (
        <li key={s.done} className={begun[s.done] ? 'done' : ''}>
          <Arch state={begun[s.done] ? 'open' : s === next ? 'part' : 'none'} label={begun[s.done] ? 'done' : 'to do'} />
          <div><b className="med">{s.title}</b><div className="muted">{s.text}</div></div>
          {!begun[s.done] && <Link to={s.to} className={`btn s ${s === next ? 'main1' : ''}`}>{s.words}</Link>}
        </li>
      ))}</ol>
    </Section>
  )
}
