import { useBlocker } from '@tanstack/react-router'
import { Button } from './button'
import { Dialog } from './dialog'

/**
 * LeaveGuard asks before the page is left while dirty. A change of the query (a tab, a filter) is no leaving.
 * what says what would be lost; onDiscard throws the edit away before leaving.
 */
export function LeaveGuard({ dirty, what, keep = 'Stay', leave = 'Leave and discard', onDiscard }: { dirty: boolean; what: string; keep?: string; leave?: string; onDiscard?: () => void }) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => dirty && current.pathname !== next.pathname,
    enableBeforeUnload: dirty,
    withResolver: true,
  })
  if (blocker.status !== 'blocked') return null
  return (
    <Dialog open onClose={blocker.reset} title="Leave this page?">
      <p className="second">{what}</p>
      <div className="dialogacts">
        <Button small onClick={blocker.reset} data-autofocus>{keep}</Button>
        <Button small kind="danger" onClick={() => { onDiscard?.(); blocker.proceed() }}>{leave}</Button>
      </div>
    </Dialog>
  )
}
