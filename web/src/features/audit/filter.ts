import type { Search } from '../../ui/url'

/** The spans that can be chosen, in seconds. */
export const ranges = { '1h': { label: '1 h', words: '1 h', seconds: 3600 }, '24h': { label: '24 h', words: '24 h', seconds: 86_400 }, '7d': { label: '7 days', words: '7 days', seconds: 7 * 86_400 }, '30d': { label: '30 days', words: '30 days', seconds: 30 * 86_400 } } as const
export type Range = keyof typeof ranges

const one = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value)

/** rangeOf reads the span of the address: 24 hours unless another one is named. */
export function rangeOf(url: Search): Range { const name = one(url['range']); return name !== undefined && Object.hasOwn(ranges, name) ? (name as Range) : '24h' }

/** What the server is asked for, beside times. */
export interface LogFilter { user?: string; endpoint?: string; status?: string; credential?: string; key?: string; method?: string; requestId?: string; path?: string; ip?: string }

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const address = /^(\d{1,3}(\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:.]+)$/i

/** searched tells what was typed into the one search field: a request id, an address or a part of a path. */
export function searched(text: string): LogFilter {
  const typed = text.trim()
  if (typed === '') return {}
  if (uuid.test(typed)) return { requestId: typed.toLowerCase() }
  if (address.test(typed)) return { ip: typed }
  return { path: typed }
}

/** filterOf reads the filters of the address. */
export function filterOf(url: Search): LogFilter {
  const out: LogFilter = searched(one(url['q']) ?? '')
  for (const name of ['user', 'endpoint', 'status', 'credential', 'key', 'method', 'ip'] as const) {
    const value = one(url[name])
    if (value !== undefined && value !== '') out[name] = value
  }
  return out
}

/** zoomOf is the span that was dragged over in the chart, or undefined. */
export function zoomOf(url: Search): { from: string; to: string } | undefined {
  const from = one(url['from']); const to = one(url['to'])
  return from && to && !Number.isNaN(Date.parse(from)) && !Number.isNaN(Date.parse(to)) ? { from, to } : undefined
}

/** isFiltered says whether anything narrows the list beside its time. */
export function isFiltered(filter: LogFilter): boolean { return Object.keys(filter).length > 0 }
