import { bytesWords, durationWords } from '../../ui/time'
import { Button } from '../../ui/button'
import { CodeBlock } from '../../ui/code'
import { printJSON } from '../../ui/json'
import type { Measure, Outcome, RunDetail, Step } from './run'

/** usWords writes microseconds. */
export const usWords = (us: number) => (us < 100 ? `${us} µs` : durationWords(us / 1000))

const measures: Record<string, [label: string, write: (n: number) => string]> = {
  time_ms: ['Time', (n) => durationWords(n)],
  nodes: ['Nodes', (n) => n.toLocaleString('en')],
  memory_bytes: ['Memory', bytesWords],
  records_calls: ['Records calls', (n) => n.toLocaleString('en')],
  handed_bytes: ['Record data', bytesWords],
  changes: ['Changes', (n) => n.toLocaleString('en')],
  changed_bytes: ['Changed data', bytesWords],
  records_read: ['Read by id', (n) => n.toLocaleString('en')],
}

/** Took draws what a run used of each limit. */
export function Took({ used }: { used: readonly Measure[] }) {
  return (
    <dl className="take" aria-label="What it used of the limits">
      {used.map((m) => {
        const [label, write] = measures[m.what] ?? [m.what, String]
        return (
          <div key={m.what}>
            <dt>{label}</dt>
            <dd className="bar" aria-hidden="true"><i style={{ width: `${Math.min(100, (100 * m.used) / m.limit)}%` }} className={m.used >= m.limit ? 'full' : ''} /></dd>
            <dd className="figure">{write(m.used)} of {write(m.limit)}</dd>
          </div>
        )
      })}
    </dl>
  )
}

/** ConsoleLines shows what a run printed. */
export function ConsoleLines({ lines }: { lines: Outcome['console'] }) {
  const several = new Set(lines.map((l) => l.component)).size > 1
  return (
    <ol className="con" aria-label="Console">{lines.map((l, i) => (
      <li key={i} className={l.level}>
        <span className="muted num" title="since the component began">{l.at_us ? usWords(l.at_us) : ''}</span>
        <span className="muted">{l.level}</span>
        <span className="context">{l.text}</span>
        <span className="muted num">{l.line ? <>{several && l.component ? `${l.component} ` : ''}<span className="hidden-words">line </span>:{l.line}</> : ''}</span>
      </li>
    ))}</ol>
  )
}

/** ErrorLine says how a run failed, and where. */
export function ErrorLine({ error }: { error: NonNullable<Outcome['error']> }) {
  return (
    <div className="runerror">
      <p><span className="code2 cx">{error.status > 0 ? `${error.status} ` : ''}{error.code}</span> <b>{error.message}</b>{error.line > 0 && <span className="muted"> {error.component} {error.line}:{error.column}</span>}</p>
      {error.stack && <pre className="src wrap">{error.stack}</pre>}
      {error.details && Object.keys(error.details).length > 0 && <pre className="src wrap">{printJSON(error.details)}</pre>}
    </div>
  )
}

/** Result is the right side of an editor after a run: what came back, what it printed, what it used. */
export function Result({ outcome, onClear }: { outcome: Outcome; onClear?: () => void }) {
  const failed = outcome.status !== 'succeeded'
  return (
    <div className="result" role="region" aria-label="Result of the run" data-status={outcome.status}>
      <header className="rh">
        <b className="med">Result</b>
        {outcome.error && <><span className="code2 cx">{outcome.error.status}</span><span className="bad med">{outcome.error.code}</span></>}
        {outcome.status === 'invalid' && <span className="bad med">{outcome.problems.length === 1 ? '1 problem' : `${outcome.problems.length} problems`}</span>}
        <span className="grow" />
        <span className="muted">{outcome.status === 'invalid' ? 'nothing ran' : `${usWords(outcome.tookUs)} · nothing was kept`}</span>
        {onClear && <Button kind="quiet" small onClick={onClear}>Clear</Button>}
      </header>
      {failed && outcome.error && <div className="pad8"><ErrorLine error={outcome.error} /></div>}
      {outcome.status === 'invalid' && <ul className="problems">{outcome.problems.map((p, i) => <li key={i}><code>{p.path || 'draft'}{p.line > 0 ? ` ${p.line}:${p.column}` : ''}</code> {p.message}</li>)}</ul>}
      {!failed && <pre className="src res" tabIndex={-1}>{printJSON(outcome.result)}</pre>}
      {outcome.console.length > 0 && <>
        <header className="rh"><b className="med">Console</b><span className="muted">{outcome.console.length === 1 ? '1 line' : `${outcome.console.length} lines`}</span></header>
        <ConsoleLines lines={outcome.console} />
      </>}
      {outcome.used.length > 0 && <>
        <header className="rh"><b className="med">Took</b><span className="grow" /><span className="muted">of what a run may take{outcome.user ? `, as ${outcome.user.email}` : ''}</span></header>
        <Took used={outcome.used} />
      </>}
    </div>
  )
}

/** A step with the moment it began, from the start of the run, in microseconds. */
export interface Timed { step: Step; index: number; from: number }

/** timed finds when each step began: one begins when the one before it ended, and those inside an if or each begin with it. */
export function timed(trace: readonly Step[]): Timed[] {
  const clock: number[] = [0]
  return trace.map((step, index) => {
    const depth = step.depth
    while (clock.length > depth + 1) clock.pop()
    while (clock.length <= depth) clock.push(clock[clock.length - 1] ?? 0)
    const from = clock[depth] ?? 0
    clock[depth] = from + step.took_us
    clock[depth + 1] = from
    return { step, index, from }
  })
}

/** stepWords says in a line what a step came to. */
export function stepWords(step: Step): string {
  if (step.error) return step.details ? `${step.error} ${JSON.stringify(step.details)}` : step.error
  if (step.skipped) return `skipped: ${step.skipped}`
  const r = step.result
  if (step.type === 'if') return r === true ? 'true, so then' : 'false, so else'
  if (r !== null && typeof r === 'object' && 'records' in r && Array.isArray(r.records)) return r.records.length === 1 ? '1 record' : `${r.records.length} records`
  if (r !== null && typeof r === 'object' && 'id' in r && typeof r.id === 'string') return r.id
  const text = JSON.stringify(r)
  return text === undefined || text === 'null' ? '' : text
}

/** Waterfall draws the steps of a run over its time; a row selects its node. */
export function Waterfall({ trace, total, selected, onSelect }: { trace: readonly Step[]; total: number; selected?: string | undefined; onSelect?: (node: string) => void }) {
  const all = timed(trace)
  const whole = Math.max(total, 1, ...all.map((t) => t.from + t.step.took_us))
  return (
    <table className="tbl wf fix" aria-label="Steps of the run">
      <colgroup><col style={{ width: 190 }} /><col style={{ width: 110 }} /><col /><col style={{ width: 76 }} /><col style={{ width: '34%' }} /></colgroup>
      <thead className="hidden-words"><tr><th scope="col">Node</th><th scope="col">Type</th><th scope="col">When</th><th scope="col">Took</th><th scope="col">Result</th></tr></thead>
      <tbody>
        {all.slice(0, 300).map(({ step, index, from }) => (
          <tr key={index} className={`${step.node === selected ? 'on' : ''} ${step.error ? 'bad' : ''}`}>
            <td style={{ paddingLeft: 24 + 14 * Math.min(step.depth, 6) }}>{onSelect ? <button type="button" className="linkish mono" onClick={() => { onSelect(step.node) }}>{step.node}</button> : <span className="mono">{step.node}</span>}</td>
            <td className="second">{step.type}</td>
            <td><span className="wbar"><i style={{ left: `${(100 * from) / whole}%`, width: `max(2px, ${(100 * step.took_us) / whole}%)` }} className={step.error ? 'bad' : step.skipped ? 'off' : ''} /></span></td>
            <td className="num">{usWords(step.took_us)}</td>
            <td className={`mono trunc ${step.error ? 'bad' : ''}`} title={stepWords(step)}>{stepWords(step)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** RunBody is all that is kept of a run. */
export function RunBody({ run }: { run: RunDetail }) {
  return (
    <>
      {run.error && <ErrorLine error={run.error} />}
      {run.trace && run.trace.length > 0 && <section className="sec"><h2>Trace<span className="muted s12">{run.trace.length} steps</span></h2><div className="pane"><Waterfall trace={run.trace} total={run.tookUs} /></div></section>}
      <section className="sec"><h2>Console<span className="muted s12">{run.console.length === 0 ? 'nothing printed' : ''}</span></h2>{run.console.length > 0 && <div className="pane"><ConsoleLines lines={run.console} /></div>}</section>
      {run.used.length > 0 && <section className="sec"><h2>Took<span className="muted s12">of what a run may take</span></h2><Took used={run.used} /></section>}
      {run.trace && <details><summary>Trace as JSON</summary><CodeBlock text={printJSON(run.trace)} language="json" title="Trace" max={320} /></details>}
    </>
  )
}
