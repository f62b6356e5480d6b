import { useEffect, useRef, type ButtonHTMLAttributes, type FocusEvent, type MouseEvent, type ReactNode } from 'react'

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** kind: main is the one accent button of a page; quiet has no border; danger refuses or destroys. */
  kind?: 'main' | 'plain' | 'quiet' | 'danger' | 'bad'
  small?: boolean
  icon?: ReactNode
  /** busy keeps the words and the width, and takes no second press. */
  busy?: boolean
}

/** A second press within this time is a double click: a save begins a moment after its press, before the button is busy. */
const doubleClick = 300

/** Button: its words are verb and object. One that can be busy takes a double click as one press. */
export function Button({ kind = 'plain', small, icon, busy, children, className, disabled, onClick, onBlur, type = 'button', ...rest }: ButtonProps) {
  const kinds = { main: 'main1', plain: '', quiet: 'quiet', danger: 'danger', bad: 'bad1' }
  const classes = ['btn', kinds[kind], small ? 's' : '', busy ? 'busy' : '', className ?? ''].filter(Boolean).join(' ')
  const last = useRef(-doubleClick)
  useEffect(() => (busy ? () => { last.current = -doubleClick } : undefined), [busy]) // what it did is over: the next press is meant
  const press = busy === undefined ? onClick : (event: MouseEvent<HTMLButtonElement>) => {
    if (busy || event.timeStamp - last.current < doubleClick) { event.preventDefault(); return }
    last.current = event.timeStamp
    onClick?.(event)
  }
  // A press after something else was used is no double click, however soon it comes.
  const left = (event: FocusEvent<HTMLButtonElement>) => { last.current = -doubleClick; onBlur?.(event) }
  return (
    <button type={type} className={classes} disabled={disabled} aria-disabled={busy || undefined} aria-busy={busy || undefined}
      onClick={press} onBlur={left} {...rest}>
      {icon}{children}
    </button>
  )
}

/** IconButton has a label that is read and shown as a tooltip by the browser. */
export function IconButton({ label, small, kind = 'quiet', children, className, ...rest }: Omit<ButtonProps, 'icon'> & { label: string }) {
  const kinds = { main: 'main1', plain: '', quiet: 'quiet', danger: 'danger', bad: 'bad1' }
  return (
    <button type="button" className={`btn icon ${kinds[kind]} ${small ? 's' : ''} ${className ?? ''}`} aria-label={label} title={label} {...rest}>
      {children}
    </button>
  )
}
