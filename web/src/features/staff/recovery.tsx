import { useState } from 'react'
import { Button } from '../../ui/button'
import { CopyButton } from '../../ui/copy'
import { LeaveGuard } from '../../ui/unsaved'

/** RecoveryCodes are shown once: Done is off until they are stored, and leaving asks. */
export function RecoveryCodes({ codes, onDone }: { codes: readonly string[]; onDone: () => void }) {
  const [stored, setStored] = useState(false)
  const [done, setDone] = useState(false)
  return (
    <section aria-label="Recovery codes, shown once">
      <LeaveGuard dirty={!done} what="The recovery codes are shown this once." keep="Go back and copy them" leave="Leave without them" />
      <ul className="recovery" data-testid="recovery-codes">{codes.map((code) => <li key={code}><code>{code}</code></li>)}</ul>
      <div className="row wrap top6"><CopyButton text={codes.join('\n')} words="Copy all" label="Copy all" /></div>
      <div className="row wrap done">
        <label className="row"><input type="checkbox" className="check" checked={stored} onChange={(e) => { setStored(e.target.checked) }} />I have stored them</label>
        <Button kind="main" disabled={!stored} onClick={() => { setDone(true); setTimeout(onDone) }}>Done</Button>
      </div>
    </section>
  )
}
