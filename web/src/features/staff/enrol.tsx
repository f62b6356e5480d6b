import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { sessionKey } from '../../app/session'
import { paths } from '../../app/paths'
import { useGo } from '../../ui/url'
import { Enrol, type Recovery } from './factor'
import { Gate } from './gate'
import { RecoveryCodes } from './recovery'

/** The tenant demands a second factor: without one the session opens nothing else. */
export default function EnrolPage() {
  const [recovery, setRecovery] = useState<Recovery>()
  const client = useQueryClient()
  const go = useGo()
  if (recovery) {
    return (
      <Gate title="Your recovery codes" lead="Each signs you in once, when the app is not at hand.">
        <RecoveryCodes codes={recovery.recoveryCodes} onDone={() => { client.setQueryData(sessionKey, recovery.session); go(paths.overview(), { replace: true }) }} />
      </Gate>
    )
  }
  return <Gate title="Second factor" lead="This tenant asks its staff for one. It takes a minute."><Enrol withPassword={false} big onDone={setRecovery} /></Gate>
}
