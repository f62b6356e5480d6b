import { Modal } from '@mantine/core'
import type { ReactNode } from 'react'

/** Dialog: only to destroy, to sign in, or for the palette and the help. Everything else opens in a row or a drawer. */
export function Dialog({ open, onClose, title, children, width = 460, locked }: { open: boolean; onClose: () => void; title: string; children: ReactNode; width?: number; locked?: boolean }) {
  return (
    <Modal opened={open} onClose={onClose} title={title} size={width} withCloseButton={!locked} closeOnClickOutside={!locked} closeOnEscape={!locked}
      lockScroll={false} transitionProps={{ duration: 0 }} closeButtonProps={{ 'aria-label': 'Close' }} returnFocus>
      {children}
    </Modal>
  )
}
