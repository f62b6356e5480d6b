import { fireEvent, render, screen } from '@testing-library/react'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { ApiError } from '../api/error'
import { DataTable, type Column } from './table'

interface Row { id: string; name: string }
const columns: Column<Row>[] = [{ key: 'name', head: 'name', cell: (r) => <>{r.name} <button type="button">in the row</button></> }]
const rows = Array.from({ length: 5 }, (_, i) => ({ id: `r${i}`, name: `Row ${i}` }))

// There is no layout here: every frame says that it is 800 high.
beforeEach(() => { vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(800) })

describe('DataTable', () => {
  it('moves by arrows, opens by Enter and by a click, but not by a button in the row', () => {
    const open = vi.fn()
    render(<DataTable label="things" columns={columns} rows={rows} rowKey={(r) => r.id} onOpen={open} />)
    const all = screen.getAllByRole('row').filter((r) => r.hasAttribute('data-index'))
    expect(all.map((r) => r.tabIndex)).toEqual([0, -1, -1, -1, -1])
    all[0]?.focus()
    fireEvent.keyDown(all[0] as Element, { key: 'ArrowDown' })
    expect(document.activeElement?.getAttribute('data-key')).toBe('r1')
    fireEvent.keyDown(document.activeElement as Element, { key: 'End' })
    fireEvent.keyDown(document.activeElement as Element, { key: 'Enter' })
    expect(open).toHaveBeenLastCalledWith(rows[4])
    fireEvent.click(screen.getAllByText('in the row')[2] as Element)
    expect(open).toHaveBeenCalledTimes(1)
    fireEvent.click(screen.getByText(/Row 2/))
    expect(open).toHaveBeenLastCalledWith(rows[2])
  })
  it('keeps the focused row by its key when rows come in above it', () => {
    const { rerender } = render(<DataTable label="things" columns={columns} rows={rows} rowKey={(r) => r.id} onOpen={() => undefined} />)
    const second = document.querySelector<HTMLElement>('[data-key=r1]')
    second?.focus()
    rerender(<DataTable label="things" columns={columns} rows={[{ id: 'new', name: 'New' }, ...rows]} rowKey={(r) => r.id} onOpen={() => undefined} />)
    expect(document.querySelector('[data-key=r1]')?.getAttribute('tabindex')).toBe('0')
    expect(document.activeElement?.getAttribute('data-key')).toBe('r1')
  })
  it('says what failed, with the request id, and what there is not', () => {
    const error = new ApiError({ status: 503, code: 'OVERLOADED', message: 'too many runs at once', requestId: 'r-1' })
    const { rerender } = render(<DataTable label="things" columns={columns} rows={undefined} rowKey={(r) => r.id} error={error} what="The things could not be loaded." />)
    expect(screen.getByRole('alert').textContent).toContain('503 OVERLOADED')
    expect(screen.getByText('r-1')).toBeTruthy()
    rerender(<DataTable label="things" columns={columns} rows={[]} rowKey={(r) => r.id} empty="No things yet" />)
    expect(screen.getByText('No things yet')).toBeTruthy()
  })
  it('says at its heads what it is sorted by, and is asked there for another order', () => {
    const sort = vi.fn()
    const sorts: Column<Row>[] = [{ key: 'name', head: 'name', sort: 'name', cell: (r) => r.name }, { key: 'city', head: 'city', sort: 'city', cell: () => '' }, { key: 'tags', head: 'tags', cell: () => '' }]
    render(<DataTable label="things" columns={sorts} rows={rows} rowKey={(r) => r.id} sorted={{ by: 'city', desc: true }} onSort={sort} />)
    expect(screen.getAllByRole('columnheader').map((h) => h.getAttribute('aria-sort'))).toEqual(['none', 'descending', null])
    fireEvent.click(screen.getByRole('button', { name: 'name' }))
    expect(sort).toHaveBeenLastCalledWith('name')
    expect(screen.queryByRole('button', { name: 'tags' })).toBeNull()
  })
})
