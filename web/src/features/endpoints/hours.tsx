import type { Gives } from '../../api/client'

/** Hours draws the runs of 24 hours: answered in grey, failed over them. */
export function Hours({ hours }: { hours: Gives<'GET endpoints/{slug}'>['figures']['hours'] }) {
  const most = Math.max(1, ...hours.map((h) => h.succeeded + h.failed))
  const all = hours.reduce((n, h) => n + h.succeeded + h.failed, 0)
  const failed = hours.reduce((n, h) => n + h.failed, 0)
  const clock = (at: string) => at.slice(11, 16)
  return (
    <figure className="hours">
      <svg className="chart" viewBox="0 0 720 84" height={84} preserveAspectRatio="none" role="img" aria-label={`Runs by hour: ${all} in 24 hours, ${failed} failed`}>
        {hours.map((h, i) => {
          const good = (h.succeeded / most) * 78
          const bad = (h.failed / most) * 78
          return <g key={h.at}><title>{`${clock(h.at)}: ${h.succeeded} succeeded, ${h.failed} failed`}</title><rect className="good" x={i * 30 + 2} y={82 - good} width={26} height={good} /><rect className="wrong" x={i * 30 + 2} y={82 - good - bad} width={26} height={bad} /></g>
        })}
        <line className="axis" x1="0" x2="720" y1="83" y2="83" />
      </svg>
      <figcaption className="row s11 muted"><span>{clock(hours[0]?.at ?? '')}</span><span className="grow" /><span>UTC, an hour a bar</span><span className="grow" /><span>{clock(hours.at(-1)?.at ?? '')}</span></figcaption>
    </figure>
  )
}
