const open = '[aria-haspopup=menu][aria-expanded=true], [aria-haspopup=dialog][aria-expanded=true]'

/**
 * A menu and a popover hear Escape once they have the focus, which they take a moment after they open. Until then what
 * opened them has it: there Escape presses it once more, which closes them, and reaches nothing behind them.
 */
window.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !(event.target instanceof HTMLElement)) return
  const opener = document.querySelector<HTMLElement>(open)
  if (!opener || document.getElementById(opener.getAttribute('aria-controls') ?? '')?.contains(event.target)) return
  event.preventDefault()
  event.stopImmediatePropagation()
  opener.click()
  opener.focus()
}, true)

export {}
