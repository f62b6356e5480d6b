import { act, renderHook } from '@testing-library/react'
import { beforeEach, describe, expect, it } from 'vitest'
import { dropDrafts, useDraft } from './drafts'

interface Thing { name: string; n: number }
const stored: Thing = { name: 'quote', n: 1 }
const draft = (version = '1', value = stored, key = 'component/quote') => renderHook(({ v, s, k }) => useDraft<Thing>(k, s, v), { initialProps: { v: version, s: value, k: key } })

beforeEach(() => { sessionStorage.clear() })

describe('useDraft', () => {
  it('is the stored object until something changes, and again when the change is taken back', () => {
    const { result } = draft()
    expect(result.current).toMatchObject({ value: stored, dirty: false, against: '1' })
    act(() => { result.current.set((was) => ({ ...was, n: 2 })) })
    expect(result.current).toMatchObject({ value: { name: 'quote', n: 2 }, dirty: true })
    act(() => { result.current.set(stored) })
    expect(result.current.dirty).toBe(false)
  })
  it('is there again after a reload', () => {
    const first = draft()
    act(() => { first.result.current.set({ name: 'quote', n: 3 }) })
    first.unmount()
    expect(draft().result.current).toMatchObject({ value: { name: 'quote', n: 3 }, dirty: true, restored: true })
    expect(draft('1', stored, 'component/other').result.current.dirty).toBe(false)
  })
  it('keeps the version it began from when somebody else saves, until it is rebased', () => {
    const { result, rerender } = draft()
    act(() => { result.current.set({ name: 'quote', n: 4 }) })
    rerender({ v: '2', s: { name: 'quote', n: 9 }, k: 'component/quote' })
    expect(result.current).toMatchObject({ value: { name: 'quote', n: 4 }, against: '1', stale: true })
    act(() => { result.current.rebase('2') })
    expect(result.current).toMatchObject({ value: { name: 'quote', n: 4 }, against: '2', stale: false })
  })
  it('is forgotten when it is discarded and at sign-out', () => {
    const { result } = draft()
    act(() => { result.current.set({ name: 'quote', n: 5 }) })
    act(() => { result.current.discard() })
    expect(result.current).toMatchObject({ value: stored, dirty: false })
    act(() => { result.current.set({ name: 'quote', n: 6 }) })
    sessionStorage.setItem('of another page', '1')
    dropDrafts()
    expect(Object.keys(sessionStorage)).toEqual(['of another page'])
  })
})
