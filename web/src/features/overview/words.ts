import type { Counts, OverviewNotice } from '../../api/admin'
import { agoWords, countWords, durationWords } from '../../ui/time'

/** changeWords compares a figure with that of the time before. */
export function changeWords(now: number, before: number): string {
  if (before === 0) return now === 0 ? 'unchanged' : 'none before'
  const percent = Math.round(((now - before) / before) * 100)
  if (percent === 0) return 'unchanged'
  return percent > 0 ? `${percent.toLocaleString('en')} % more than before` : `${-percent} % fewer than before`
}

/** slowerWords compares two times to answer; slow says that it is worth a look. */
export function slowerWords(now: number, before: number): { words: string; slow: boolean } {
  if (before === 0 || now === 0) return { words: before === 0 && now > 0 ? 'none before' : 'unchanged', slow: false }
  const by = now - before
  if (Math.abs(by) < Math.max(1, before * 0.05)) return { words: 'unchanged', slow: false }
  return by > 0 ? { words: `${durationWords(by)} slower`, slow: by > before * 0.25 && by > 5 } : { words: `${durationWords(-by)} faster`, slow: false }
}

/** shareWords is the share of errors in percent. */
export function shareWords(part: number, whole: number): string {
  if (whole === 0) return '0'
  const percent = (part / whole) * 100
  return percent === 0 ? '0' : percent < 0.01 ? 'under 0.01' : percent.toFixed(percent < 10 ? 2 : 1)
}

/** errorsWords says how many errors there are, and how many of them are 5xx. */
export function errorsWords(c: Counts): string {
  if (c.errors === 0) return 'none'
  return c.failed === 0 ? `${countWords(c.errors)}, none of them 5xx` : `${countWords(c.errors)}, ${countWords(c.failed)} of them 5xx`
}

/** noticeWords are the head and the text of something that needs a look. */
export function noticeWords(n: OverviewNotice, now: number): { head: string; text: string; bad: boolean } {
  const times = n.count === 1 ? 'once' : `${countWords(n.count)} times`
  switch (n.kind) {
    case 'failed_runs': return { head: `${n.count === 1 ? '1 run' : `${countWords(n.count)} runs`} of ${n.name} failed`, text: n.text || 'The latest run has the error.', bad: true }
    case 'failing': return { head: `${n.name} answered 5xx ${times}`, text: 'The audit log has the requests.', bad: true }
    case 'slow': return { head: `${n.name} is slow: p95 ${durationWords(n.p95Ms)}`, text: `Over ${countWords(n.count)} requests.`, bad: false }
    case 'limit': return { head: `Key ${n.name} hit its limit ${times}`, text: 'Each of these requests was refused with 429.', bad: false }
    case 'mails': return { head: n.count === 1 ? '1 mail waits to be sent' : `${countWords(n.count)} mails wait to be sent`, text: `${n.since ? `The oldest for ${agoWords(n.since, now).replace(' ago', '')}. ` : ''}${n.text}`, bad: false }
  }
}
