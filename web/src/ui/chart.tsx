import { lazy, Suspense, type ReactNode } from 'react'

/** Colours of series: 1 answered, 2 errors, 3 look here, 4 the other; mute where another series matters. */
export type ChartColour = 'chart-1' | 'chart-2' | 'chart-3' | 'chart-4' | 'chart-mute'

export interface ChartSeries { label: string; values: readonly (number | null)[]; colour: ChartColour }

export interface ChartProps {
  /** title names the chart, and text says in a sentence what it shows: its alternative for who does not see it. */
  title: string
  text: string
  /** times of the points, in seconds since 1970; values of every series are one for each time. */
  times: readonly number[]
  /** bars are stacked, the first series lowest; lines stand for themselves. */
  kind: 'bars' | 'lines'
  series: readonly ChartSeries[]
  height?: number
  /** unit and format of a value, in labels and in the tooltip. */
  format?: (value: number) => string
  /** topLabel stands at the upper grid line in place of its figure alone: "4,000 in 2 hours". */
  topLabel?: (value: number) => string
  /** onZoom is called with the range in seconds that was dragged over. */
  onZoom?: (from: number, to: number) => void
}

const Plot = lazy(() => import('./chart-plot'))

/** Chart draws bars for counts and lines for times. The library loads when the first chart is shown; the height is held meanwhile. */
export function Chart(props: ChartProps) {
  const { title, text, times, series, height = 166, format = (v) => v.toLocaleString('en') } = props
  return (
    <figure className="chartbox">
      <div role="img" aria-label={`${title}. ${text}`} style={{ height }}><Suspense fallback={null}><Plot {...props} /></Suspense></div>
      <table className="hidden-words">
        <caption>{title}</caption>
        <thead><tr><th scope="col">Time</th>{series.map((s) => <th scope="col" key={s.label}>{s.label}</th>)}</tr></thead>
        <tbody>{times.slice(-60).map((time, i) => {
          const at = Math.max(0, times.length - 60) + i
          return <tr key={time}><th scope="row">{new Date(time * 1000).toISOString().slice(0, 16)}</th>{series.map((s) => { const v = s.values[at]; return <td key={s.label}>{v === null || v === undefined ? 'none' : format(v)}</td> })}</tr>
        })}</tbody>
      </table>
    </figure>
  )
}

/** Legend names the series of a chart; lines have a stroke for a square. */
export function Legend({ items, lines }: { items: readonly { label: ReactNode; colour: ChartColour }[]; lines?: boolean }) {
  return <span className="legend">{items.map((item, i) => <span key={i}><i className={`${lines ? 'l ' : ''}${item.colour}`} />{item.label}</span>)}</span>
}

/** Spark is a row of small bars in a table's cell: values, with those of bad above them in madder. */
export function Spark({ values, bad, label }: { values: readonly number[]; bad?: readonly number[]; label: string }) {
  const top = Math.max(1, ...values)
  const step = 108 / Math.max(1, values.length)
  return (
    <svg className="spark" width={108} height={18} viewBox="0 0 108 18" role="img" aria-label={label}>
      {values.map((v, i) => {
        const height = v === 0 ? 0 : Math.max(1, (v / top) * 16)
        const wrong = Math.min(height, ((bad?.[i] ?? 0) / top) * 16)
        return <g key={i}><rect x={i * step} y={18 - height} width={Math.max(1, step - 1)} height={height} fill="var(--chart-mute)" />{wrong > 0 && <rect x={i * step} y={18 - height} width={Math.max(1, step - 1)} height={Math.max(2, wrong)} fill="var(--chart-2)" />}</g>
      })}
    </svg>
  )
}
