import type { ButtonHTMLAttributes, ReactNode } from 'react'

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** kind: main is the one accent button of a page; quiet has no border; danger refuses or destroys. */
  kind?: 'main' | 'plain' | 'quiet' | 'danger' | 'bad'
  small?: boolean
  icon?: ReactNode
  /** busy keeps the words and the width, and takes no second press. */
  busy?: boolean
}

/** Button: its words are verb and object. */
export function Button({ kind = 'plain', small, icon, busy, children, className, disabled, onClick, type = 'button', ...rest }: ButtonProps) {
  const kinds = { main: 'main1', plain: '', quiet: 'quiet', danger: 'danger', bad: 'bad1' }
  const classes = ['btn', kinds[kind], small ? 's' : '', busy ? 'busy' : '', className ?? ''].filter(Boolean).join(' ')
  return (
    <button type={type} className={classes} disabled={disabled} aria-disabled={busy || undefined} aria-busy={busy || undefined}
      onClick={busy ? (event) => { event.preventDefault() } : onClick} {...rest}>
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
