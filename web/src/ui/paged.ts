import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useRef } from 'react'
import type { Meta, Page } from '../api/client'
import { asError, type ApiError } from '../api/error'
import { useUrl } from './url'

/** A list that is paged by cursor, with its place in the address: after is the cursor, at the number of the first row. */
export interface Paged<Row, M> {
  rows: readonly Row[] | undefined
  meta: M | undefined
  error: ApiError | undefined
  loading: boolean
  query: UseQueryResult<Page<readonly Row[], M>>
  /** pager is handed to <Pager>. */
  pager: { from: number; count: number; hasMore: boolean; hasPrevious: boolean; onPrevious: () => void; onNext: () => void }
}

/**
 * usePaged loads one page of a list. key names the list and its filters; load is given the cursor, undefined for the first page.
 * A change of a filter must clear after and at: see clearPage.
 */
export function usePaged<Row, M = Meta>({ key, load, enabled = true }: { key: readonly unknown[]; load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<readonly Row[], M>>; enabled?: boolean }): Paged<Row, M> {
  const [url, setUrl] = useUrl()
  const after = typeof url['after'] === 'string' ? url['after'] : undefined
  const from = Math.max(1, Number(url['at']) || 1)
  const back = useRef(new Map<string, { after: string | undefined; at: string | undefined }>())
  const query = useQuery({ queryKey: [...key, after ?? ''], queryFn: ({ signal }) => load(after, signal), placeholderData: keepPreviousData, enabled })
  const rows = query.data?.rows
  const meta = query.data?.meta as Meta | undefined
  const next = meta?.nextCursor ?? undefined
  return {
    rows, meta: query.data?.meta, error: query.error ? asError(query.error) : undefined, loading: query.isFetching, query,
    pager: {
      from, count: rows?.length ?? 0, hasMore: next !== undefined, hasPrevious: after !== undefined,
      onPrevious: () => { setUrl(after === undefined ? {} : back.current.get(after) ?? { after: undefined, at: undefined }, { push: true }) },
      onNext: () => {
        if (next === undefined) return
        back.current.set(next, { after, at: from === 1 ? undefined : String(from) })
        setUrl({ after: next, at: String(from + (rows?.length ?? 0)) }, { push: true })
      },
    },
  }
}

/** clearPage goes with every change of a filter: back to the first page. */
export const clearPage = { after: undefined, at: undefined } as const
