import { fireEvent, render, screen } from '@testing-library/react'
import { describe, expect, it, vi } from 'vitest'
import { Button } from './button'

describe('Button', () => {
  it('takes a double click as one press', () => {
    const save = vi.fn()
    render(<Button busy={false} onClick={save}>Save</Button>)
    screen.getByText('Save').focus()
    fireEvent.click(screen.getByText('Save'))
    fireEvent.click(screen.getByText('Save'))
    expect(save).toHaveBeenCalledTimes(1)
  })
  it('takes a press after a field was filled, however soon', () => {
    const save = vi.fn()
    render(<><input aria-label="name" /><Button busy={false} onClick={save}>Save</Button></>)
    screen.getByText('Save').focus()
    fireEvent.click(screen.getByText('Save'))
    screen.getByLabelText('name').focus()
    screen.getByText('Save').focus()
    fireEvent.click(screen.getByText('Save'))
    expect(save).toHaveBeenCalledTimes(2)
  })
})
