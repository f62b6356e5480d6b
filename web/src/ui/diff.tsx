import { useMemo } from 'react'

export interface DiffLine { op: ' ' | '-' | '+'; text: string }

/** lineDiff compares two texts line by line (longest common subsequence; over 2,000 lines each it gives all of both). */
export function lineDiff(before: string, after: string): DiffLine[] {
  const a = before === '' ? [] : before.split('\n')
  const b = after === '' ? [] : after.split('\n')
  if (a.length > 2000 || b.length > 2000) return [...a.map((text) => ({ op: '-' as const, text })), ...b.map((text) => ({ op: '+' as const, text }))]
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const x = a.slice(head, a.length - tail)
  const y = b.slice(head, b.length - tail)
  const width = y.length + 1
  const table = new Uint16Array((x.length + 1) * width)
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      table[i * width + j] = x[i] === y[j] ? (table[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(table[(i + 1) * width + j] ?? 0, table[i * width + j + 1] ?? 0)
    }
  }
  const out: DiffLine[] = a.slice(0, head).map((text) => ({ op: ' ', text }))
  let i = 0, j = 0
  while (i < x.length || j < y.length) {
    const left = x[i], right = y[j]
    if (left !== undefined && left === right) { out.push({ op: ' ', text: left }); i++; j++ }
    else if (left !== undefined && (right === undefined || (table[(i + 1) * width + j] ?? 0) >= (table[i * width + j + 1] ?? 0))) { out.push({ op: '-', text: left }); i++ }
    else if (right !== undefined) { out.push({ op: '+', text: right }); j++ }
  }
  return [...out, ...a.slice(a.length - tail).map((text) => ({ op: ' ' as const, text }))]
}

/** near keeps the changed lines and two around each; what is left out is one line that says how much. */
function near(lines: readonly DiffLine[], around = 2): (DiffLine | number)[] {
  const keep = new Set(lines.flatMap((line, i) => (line.op === ' ' ? [] : Array.from({ length: around * 2 + 1 }, (_, k) => i - around + k))))
  const out: (DiffLine | number)[] = []
  lines.forEach((line, i) => {
    const last = out.at(-1)
    if (keep.has(i)) out.push(line)
    else if (typeof last === 'number') out[out.length - 1] = last + 1
    else out.push(1)
  })
  return out
}

/** CodeDiff shows before and after as lines, - and + with their tints. */
export function CodeDiff({ before, after, all }: { before: string; after: string; all?: boolean }) {
  const lines = useMemo(() => { const list = lineDiff(before, after); return all ? list : near(list) }, [before, after, all])
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls
    <div className="diff" role="group" aria-label="Before and after" tabIndex={0}>
      {lines.map((line, i) => typeof line === 'number'
        ? <div key={i} className="dl2 rest"><span> </span>{line} {line === 1 ? 'line' : 'lines'} alike</div>
        : <div key={i} className={`dl2 ${line.op === '-' ? 'del' : line.op === '+' ? 'add' : ''}`}><span>{line.op}</span>{line.text}</div>)}
    </div>
  )
}
