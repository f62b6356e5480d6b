import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef, useSyncExternalStore } from 'react'
import type { ChartProps } from './chart'

const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

/** useColours changes whenever the colours of the page do: the canvas must be drawn anew. */
function useColours(): string {
  return useSyncExternalStore((listener) => {
    const watch = new MutationObserver(listener)
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'data-mantine-color-scheme'] })
    const dark = window.matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', listener)
    return () => { watch.disconnect(); dark.removeEventListener('change', listener) }
  }, () => css('page'))
}

/** stack adds each series to those below it. */
export function stack(values: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const sums: number[] = []
  return values.map((list) => list.map((v, i) => (sums[i] = (sums[i] ?? 0) + (v ?? 0))))
}

/** ticks are zero, half and the round number at or over the highest. */
export function roundUp(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 4, 5, 8, 10].find((m) => m * power >= value) ?? 10) * power
}

/** alone finds the values with none before and after them: a line through one point cannot be seen. */
const alone: uPlot.Series.Points.Filter = (u, series) => {
  const list = Array.from(u.data[series] ?? [])
  return list.flatMap((v, i) => (typeof v === 'number' && typeof list[i - 1] !== 'number' && typeof list[i + 1] !== 'number' ? [i] : []))
}

export default function Plot({ times, kind, series, height = 166, format = (v) => v.toLocaleString('en'), topLabel, onZoom }: ChartProps) {
  const host = useRef<HTMLDivElement>(null)
  const tip = useRef<HTMLDivElement>(null)
  const colours = useColours()
  const latest = useRef({ format, topLabel, onZoom })
  useEffect(() => { latest.current = { format, topLabel, onZoom } })

  useEffect(() => {
    const parent = host.current
    if (!parent) return
    const bars = kind === 'bars'
    const drawn = bars ? stack(series.map((s) => s.values)).reverse() : series.map((s) => [...s.values])
    const order = bars ? [...series].reverse() : [...series]
    const highest = Math.max(0, ...drawn.flat().filter((v) => v !== null))
    const top = roundUp(highest)
    const span = (times.at(-1) ?? 0) - (times[0] ?? 0)
    const label = (seconds: number) => {
      const at = new Date(seconds * 1000)
      return seconds % 86_400 === 0 ? `${days[at.getUTCDay()] ?? ''} ${at.getUTCDate()}` : at.toISOString().slice(11, 16)
    }
    const size = () => ({ width: Math.max(120, parent.clientWidth), height })
    const step = times.length > 1 ? (times[1] ?? 0) - (times[0] ?? 0) : 60
    const chart = new uPlot({
      ...size(),
      legend: { show: false },
      padding: [14, 0, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: onZoom !== undefined, y: false, setScale: false } },
      scales: { x: { time: true, range: (_, min, max) => [min - (bars ? step / 2 : 0), max + (bars ? step / 2 : 0)] }, y: { range: [0, top] } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      axes: [
        { stroke: css('text-3'), font: '11px "Hanken Grotesk", sans-serif', grid: { show: false }, ticks: { show: false }, border: { show: true, stroke: css('line-strong'), width: 1 }, size: 22, space: 90, ...(span > 2 * 86_400 ? { incrs: [1, 2, 5, 10, 30].map((n) => n * 86_400) } : {}), values: (_, all) => all.map(label) },
        { show: true, size: 0, splits: () => [0, top / 2, top], grid: { stroke: css('line'), width: 1 }, ticks: { show: false }, values: () => [] },
      ],
      series: [{}, ...order.map((s): uPlot.Series => ({ label: s.label, stroke: css(s.colour), ...(bars ? { fill: css(s.colour), width: 0 } : { width: 1.6 }), points: bars ? { show: false } : { show: true, size: 4, width: 0, fill: css(s.colour), filter: alone }, paths: bars ? uPlot.paths.bars?.({ size: [0.8, 40], align: 0 }) : uPlot.paths.linear?.() }))],
      hooks: {
        draw: [(u) => {
          const { ctx } = u
          ctx.save()
          ctx.font = `${11 * devicePixelRatio}px "Hanken Grotesk", sans-serif`
          ctx.textAlign = 'left'
          ctx.textBaseline = 'alphabetic'
          ctx.lineJoin = 'round'
          ctx.lineWidth = 5 * devicePixelRatio
          ctx.strokeStyle = css('page')
          ctx.fillStyle = css('text-3')
          for (const value of [top / 2, top]) {
            const words = value === top && latest.current.topLabel ? latest.current.topLabel(value) : latest.current.format(value)
            const y = u.valToPos(value, 'y', true) - 4 * devicePixelRatio
            ctx.strokeText(words, u.bbox.left, y)
            ctx.fillText(words, u.bbox.left, y)
          }
          ctx.restore()
        }],
        setCursor: [(u) => {
          const box = tip.current
          const index = u.cursor.idx
          if (!box) return
          const time = index === null || index === undefined ? undefined : times[index]
          if (time === undefined || index === null || index === undefined || (u.cursor.left ?? -1) < 0) { box.hidden = true; return }
          box.hidden = false
          box.replaceChildren()
          const head = document.createElement('b')
          head.textContent = `${new Date(time * 1000).toISOString().slice(5, 16).replace('T', ' ')} UTC`
          box.append(head)
          for (const s of series) {
            const name = document.createElement('span')
            const value = document.createElement('i')
            const v = s.values[index]
            name.textContent = s.label
            value.textContent = v === null || v === undefined ? '–' : latest.current.format(v)
            box.append(name, value)
          }
          const left = u.valToPos(time, 'x')
          box.style.left = `${left}px`
          box.classList.toggle('left', left > parent.clientWidth / 2)
        }],
        setSelect: [(u) => {
          if (u.select.width < 4) return
          latest.current.onZoom?.(Math.round(u.posToVal(u.select.left, 'x')), Math.round(u.posToVal(u.select.left + u.select.width, 'x')))
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        }],
      },
    }, [[...times], ...drawn] as uPlot.AlignedData, parent)
    const watch = new ResizeObserver(() => { chart.setSize(size()) })
    watch.observe(parent)
    return () => { watch.disconnect(); chart.destroy() }
  }, [times, kind, series, height, colours, onZoom === undefined]) // eslint-disable-line react-hooks/exhaustive-deps -- the functions go through latest

  return <div className="plot" ref={host}><div className="charttip" ref={tip} hidden /></div>
}
