import { fireEvent, render, screen } from '@testing-library/react'
import { describe, expect, it, vi } from 'vitest'
import { ApiError } from '../../api/error'
import { Refused } from './refused'

const draw = (code: string, message: string, fields?: Record<string, string>) => {
  const back = { newest: vi.fn(), first: vi.fn() }
  const error = new ApiError({ status: 400, code, message, requestId: 'r-1', ...(fields && { details: { fields } }) })
  const { unmount } = render(<Refused error={error} onNewest={back.newest} onFirst={back.first} />)
  return { ...back, words: screen.getByRole('alert').textContent, unmount }
}

describe('Refused', () => {
  it('says what is too much in the API’s words, and goes back to newest first where the order is', () => {
    const order = draw('QUERY_TOO_BROAD', 'more than 10000 records would be sorted by "city": add a filter that an index answers, or index it')
    expect(order.words).toContain('add a filter that an index answers, or index it')
    expect(order.words).toContain('r-1')
    fireEvent.click(screen.getByRole('button', { name: 'Newest first' }))
    expect(order.newest).toHaveBeenCalledTimes(1)
    order.unmount()
    draw('QUERY_TOO_BROAD', '10000 records were looked at', { website: 'no index answers this' })
    expect(screen.queryByRole('button', { name: 'Newest first' })).toBeNull()
  })
  it('says why there is no such order, or page', () => {
    const order = draw('VALIDATION', 'the list cannot be sorted so', { sort: 'lines has no order' })
    expect(order.words).toContain('lines has no order')
    expect(screen.getByRole('button', { name: 'Newest first' })).toBeTruthy()
    order.unmount()
    const page = draw('VALIDATION', 'the cursor is not valid', { cursor: 'expected a cursor of this list' })
    fireEvent.click(screen.getByRole('button', { name: 'First page' }))
    expect(page.first).toHaveBeenCalledTimes(1)
  })
})
