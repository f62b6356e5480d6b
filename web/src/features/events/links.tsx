import { paths } from '../../app/paths'
import { Link } from '../../ui/link'

/** Links go between the three pages of webhooks. */
export function Links({ at }: { at: 'events' | 'runs' | 'verifier' }) {
  const all = [['events', 'Events', paths.events()], ['runs', 'Runs', paths.runs()], ['verifier', 'Verifier test bench', paths.verifier()]] as const
  return <nav className="tabs" aria-label="Webhooks">{all.map(([key, label, to]) => <Link key={key} to={to} className={key === at ? 'on' : ''} aria-current={key === at ? 'page' : undefined}>{label}</Link>)}</nav>
}
