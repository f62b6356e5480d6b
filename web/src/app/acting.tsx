import { IconUserShield } from '@tabler/icons-react'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ask } from '../api/client'
import { asError } from '../api/error'
import { Button } from '../ui/button'
import { toast } from '../ui/toast'
import { sessionKey, useSession } from './session'

/** ActingBanner stays above the header while the session acts as another user. */
export function ActingBanner() {
  const session = useSession()
  const client = useQueryClient()
  const stop = useMutation({
    mutationFn: () => ask('DELETE session/acting'),
    onSuccess: async () => { await client.invalidateQueries({ queryKey: sessionKey }); await client.resetQueries({ predicate: (q) => q.queryKey[0] !== sessionKey[0] }) },
    onError: (thrown) => { toast.show({ arch: 'shut', text: `Still acting: ${asError(thrown).message}` }) },
  })
  if (!session.actingAs) return null
  return (
    <div className="as" role="region" aria-label="Acting as another user">
      <IconUserShield size={16} stroke={1.7} aria-hidden />
      <span className="grow">You act as <b>{session.actingAs.name || session.actingAs.email}</b>; changes name you both.</span>
      <Button small busy={stop.isPending} onClick={() => { stop.mutate() }}>Stop</Button>
    </div>
  )
}
