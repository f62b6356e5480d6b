import './build.css'
import { Button } from '../../ui/button'
import { TextField } from '../../ui/field'

const rules = {
  component: [/^[a-z][a-z0-9_]{0,62}$/, 'lower case letters, digits and _, a letter first'],
  module: [/^[a-z][a-z0-9_]{0,62}$/, 'lower case letters, digits and _, a letter first: what an import says'],
  automation: [/^[a-z][a-z0-9_]{0,62}$/, 'lower case letters, digits and _, a letter first'],
  endpoint: [/^[a-z0-9][a-z0-9_-]{0,99}$/, 'lower case letters, digits, - and _: the last part of its address'],
} as const

/** NewName asks for the name of something new, in a bar over the list. */
export function NewName({ what, taken, name, onName, onClose, onMade }: { what: keyof typeof rules; taken: readonly string[]; name: string; onName: (name: string) => void; onClose: () => void; onMade: (name: string) => void }) {
  const [rule, words] = rules[what]
  const wrong = name === '' ? undefined : taken.includes(name) ? `There is one named ${name}` : rule.test(name) ? undefined : `Expected ${words}`
  return (
    <form className="newbar pad" aria-label={`New ${what}`} onSubmit={(event) => { event.preventDefault(); if (name !== '' && !wrong) onMade(name) }}>
      <TextField label={what === 'endpoint' ? 'Slug of the new endpoint' : `Name of the new ${what}`} mono value={name} onChange={onName} error={wrong} help={words} autoFocus autoComplete="off" spellCheck={false} onKeyDown={(event) => { if (event.key === 'Escape') onClose() }} />
      <div className="row"><Button kind="main" type="submit" disabled={name === '' || wrong !== undefined}>Go on</Button><Button kind="quiet" onClick={onClose}>Cancel</Button></div>
    </form>
  )
}
