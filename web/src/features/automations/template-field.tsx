import { acceptCompletion, autocompletion, completionKeymap, type CompletionSource } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { EditorState, RangeSetBuilder } from '@codemirror/state'
import { Decoration, EditorView, keymap, placeholder as hint, ViewPlugin, WidgetType, type DecorationSet, type ViewUpdate } from '@codemirror/view'
import { createContext, useContext, useEffect, useRef } from 'react'
import type { ControlIds } from '../../ui/field'
import type { Reach } from './model'

/** What is in reach of the node that is edited, and where the last template field puts a name that is clicked. */
export interface ReachFrame { reach: readonly Reach[]; insert: React.RefObject<((path: string) => void) | undefined> }
export const ReachContext = createContext<ReachFrame>({ reach: [], insert: { current: undefined } })

class Chip extends WidgetType {
  readonly path: string
  constructor(path: string) { super(); this.path = path }
  override eq(other: Chip): boolean { return other.path === this.path }
  override toDOM(): HTMLElement {
    const chip = document.createElement('span')
    chip.className = 'tokchip'
    chip.textContent = this.path
    return chip
  }
}

const template = /\{\{([^{}]*)\}\}/g

function chipsOf(view: EditorView): DecorationSet {
  const found = new RangeSetBuilder<Decoration>()
  for (const m of view.state.doc.toString().matchAll(template)) found.add(m.index, m.index + m[0].length, Decoration.replace({ widget: new Chip((m[1] ?? '').trim()) }))
  return found.finish()
}

/** chips draws each {{path}} as one piece, which the arrows pass and Backspace takes away. */
const chips = ViewPlugin.fromClass(class {
  decorations: DecorationSet
  constructor(view: EditorView) { this.decorations = chipsOf(view) }
  update(update: ViewUpdate) { if (update.docChanged) this.decorations = chipsOf(update.view) }
}, {
  decorations: (plugin) => plugin.decorations,
  provide: (plugin) => EditorView.atomicRanges.of((view) => view.plugin(plugin)?.decorations ?? Decoration.none),
})

const look = EditorView.theme({
  '&': { backgroundColor: 'transparent', fontSize: 'var(--fs-12)', color: 'var(--text)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px', overflowX: 'auto' },
  '.cm-content': { padding: '4px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 8px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-placeholder': { color: 'var(--text-3)' },
  '.cm-tooltip': { backgroundColor: 'var(--surface)', border: '1px solid var(--line-strong)', borderRadius: 'var(--r-2)', boxShadow: 'var(--shadow-pop)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: 'var(--fs-12)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 8px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent-soft)', color: 'var(--text)' },
  '.cm-completionDetail': { color: 'var(--text-3)', fontStyle: 'normal', marginLeft: '10px' },
})

/**
 * TemplateField is a line of text with templates as chips; {{ or Ctrl-Space offers the names in reach. In an expression names stand bare.
 * ids tie it to its label, or label names it.
 */
export function TemplateField({ ids, label, value, onChange, expression, placeholder, wrong }: { ids?: ControlIds; label?: string; value: string; onChange: (value: string) => void; expression?: boolean; placeholder?: string; wrong?: boolean }) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const frame = useContext(ReachContext)
  const latest = useRef({ onChange, frame })
  useEffect(() => { latest.current = { onChange, frame } })
  const id = ids?.id
  const described = ids?.['aria-describedby']
  useEffect(() => {
    const parent = host.current
    if (!parent) return
    const complete: CompletionSource = (at) => {
      const before = at.matchBefore(expression ? /[\w.]+/ : /\{\{\s*[\w.-]*$/)
      if (!before && !at.explicit) return null
      const options = latest.current.frame.reach.map((r) => ({ label: r.path, detail: r.note, apply: expression ? r.path : `{{${r.path}}}` }))
      if (expression) return { from: before?.from ?? at.pos, options, validFor: /^[\w.]*$/ }
      return { from: before?.from ?? at.pos, options: options.map((o) => ({ ...o, label: `{{${o.label}`, displayLabel: o.label })), validFor: /^(\{\{)?\s*[\w.-]*$/ }
    }
    const made = new EditorView({
      parent,
      state: EditorState.create({
        doc: value,
        extensions: [
          history(), look, expression ? [] : chips, autocompletion({ override: [complete], icons: false }),
          keymap.of([{ key: 'Tab', run: acceptCompletion }, ...completionKeymap, ...historyKeymap, ...defaultKeymap.filter((k) => k.key !== 'Enter' && k.key !== 'Mod-Enter')]),
          EditorState.transactionFilter.of((change) => (change.newDoc.lines > 1 ? [] : change)),
          placeholder ? hint(placeholder) : [],
          EditorView.contentAttributes.of({ spellcheck: 'false', 'aria-multiline': 'false', ...(id ? { id, 'aria-labelledby': `${id}-label` } : {}), ...(label ? { 'aria-label': label } : {}), ...(described ? { 'aria-describedby': described } : {}) }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString())
            if (update.focusChanged && update.view.hasFocus) {
              latest.current.frame.insert.current = (path) => {
                update.view.dispatch(update.view.state.replaceSelection(expression ? path : `{{${path}}}`))
                update.view.focus()
              }
            }
          }),
        ],
      }),
    })
    view.current = made
    return () => { made.destroy(); view.current = undefined }
    // The text goes through the effect below; the rest makes a new field.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [expression, id, label, placeholder])
  useEffect(() => {
    const now = view.current
    if (now && now.state.doc.toString() !== value) now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value } })
  }, [value])
  return <div className={`tf ${wrong ? 'bad' : ''}`} ref={host} />
}

/** Suggestions are the names in reach; one that is clicked goes into the field that was used last. */
export function Suggestions() {
  const { reach, insert } = useContext(ReachContext)
  if (reach.length === 0) return null
  return (
    <div className="sug" role="group" aria-label="Names in reach here">
      <span className="s12 muted">In reach here</span>
      {reach.slice(0, 40).map((r) => <button type="button" key={r.path} className="tokchip" title={r.note} onMouseDown={(e) => { e.preventDefault() }} onClick={() => { insert.current?.(r.path) }}>{r.path}</button>)}
    </div>
  )
}
