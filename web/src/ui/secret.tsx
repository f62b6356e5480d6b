import { useState, type ReactNode } from 'react'
import { Arch } from './arch'
import { Button } from './button'
import { CopyButton } from './copy'
import { LeaveGuard } from './unsaved'

/**
 * SecretOnce shows a secret that the server gives once: no ×, no scrim; Done is off until "I have stored it", and leaving asks.
 * The secret is only in this part's props: never in a draft, a query's cache or the address.
 */
export function SecretOnce({ title, why, secret, advice, onDone, children }: { title: ReactNode; why: ReactNode; secret: string; advice?: ReactNode; onDone: () => void; /** a sample to try it with */ children?: ReactNode }) {
  const [stored, setStored] = useState(false)
  return (
    <section className="once" aria-label="A secret, shown once">
      <LeaveGuard dirty what="The secret is shown this once. Leave and it is gone: only a new one helps then." keep="Go back and copy it" leave="Leave without it" />
      <div>
        <h2><Arch state="open" size={17} />{title}</h2>
        <p className="second">{why}</p>
        <div className="tok"><code data-testid="secret">{secret}</code><CopyButton text={secret} label="Copy the secret" words="Copy" main /></div>
        {advice && <p className="help">{advice}</p>}
        <div className="done">
          <label className="row"><input type="checkbox" className="check" checked={stored} onChange={(e) => { setStored(e.target.checked) }} />I have stored it</label>
          <Button disabled={!stored} onClick={onDone}>Done</Button>
          <span className="muted s12">Leaving this page asks first.</span>
        </div>
      </div>
      {children && <div>{children}</div>}
    </section>
  )
}
