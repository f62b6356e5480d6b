import { MantineProvider, Menu, Popover } from '@mantine/core'
import { fireEvent, render, screen } from '@testing-library/react'
import { useState } from 'react'
import { describe, expect, it, vi } from 'vitest'
import './escape'

function Form() {
  const [open, setOpen] = useState(false)
  return (
    <Popover opened={open} onChange={setOpen} trapFocus returnFocus>
      <Popover.Target><button type="button" onClick={() => { setOpen(!open) }}>opener</button></Popover.Target>
      <Popover.Dropdown><input aria-label="inside" /></Popover.Dropdown>
    </Popover>
  )
}
function Choice() {
  return <Menu><Menu.Target><button type="button">opener</button></Menu.Target><Menu.Dropdown><Menu.Item>inside</Menu.Item></Menu.Dropdown></Menu>
}

describe('Escape', () => {
  it.each([['a popover', <Form key="form" />], ['a menu', <Choice key="choice" />]])('closes %s that has no focus yet, and nothing behind it', (_, part) => {
    const behind = vi.fn()
    document.body.addEventListener('keydown', behind)
    render(<MantineProvider env="test">{part}</MantineProvider>)
    const opener = screen.getByText('opener')
    opener.focus()
    fireEvent.click(opener)
    expect(opener.getAttribute('aria-expanded')).toBe('true')
    fireEvent.keyDown(opener, { key: 'Escape' })
    expect(opener.getAttribute('aria-expanded')).toBe('false')
    expect(document.activeElement).toBe(opener)
    expect(behind).not.toHaveBeenCalled()
    fireEvent.keyDown(opener, { key: 'Escape' })
    expect(behind).toHaveBeenCalledTimes(1)
  })
})
