import { Dialog } from '../ui/dialog'
import { comboWords, shortcutsNow } from '../ui/shortcuts'
import { closeOverlay } from './overlays'

const always = [
  { combo: '↑ ↓', label: 'Move in a list' },
  { combo: 'Enter', label: 'Open the row' },
  { combo: 'Esc', label: 'Close the drawer; in the code editor, let Tab leave it' },
]

/** Help lists the keys that work on the page that is open. */
export default function Help() {
  return (
    <Dialog open onClose={closeOverlay} title="Keyboard shortcuts">
      <dl className="keys">
        {[...shortcutsNow().map((s) => ({ combo: comboWords(s.combo), label: s.label })), ...always].map((s) => (
          <div key={s.combo + s.label}><dt><kbd>{s.combo}</kbd></dt><dd>{s.label}</dd></div>
        ))}
      </dl>
      <p className="muted s12">The API reference lists this tenant’s own endpoints and fields. The commands of <code>gatehouse help</code> do the same as this console in a shell.</p>
    </Dialog>
  )
}
