import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionSource } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { javascript } from '@codemirror/lang-javascript'
import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, foldGutter, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, StateEffect, StateField, type Extension, type Range } from '@codemirror/state'
import { Decoration, drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers, WidgetType, type DecorationSet } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useId, useMemo, useRef } from 'react'

export type CodeLanguage = 'javascript' | 'json' | 'yaml' | 'text'

/** A mistake at a place of the text: the line is tinted and the message stands under it. line is from 1; column 0 means the line as a whole. */
export interface CodeProblem { line: number; column?: number; message: string; note?: string }

export interface CodeEditorProps {
  /** label names the editor for a screen reader. */
  label: string
  value: string
  onChange?: (value: string) => void
  language: CodeLanguage
  readOnly?: boolean
  problems?: readonly CodeProblem[]
  /** complete offers what may stand at the cursor, beside what the language knows. */
  complete?: CompletionSource
  /** lines: false leaves the numbers out, for a few lines of JSON. */
  lines?: boolean
  /** fill takes the height of the parent; without it the editor grows with its text. */
  fill?: boolean
  /** wrap breaks long lines. */
  wrap?: boolean
  /** keepsTab indents by Tab; without it Tab goes to the next field of a form. */
  keepsTab?: boolean
  onSubmit?: () => void
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--code-key)' },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'inherit' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--code-str)' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--code-num)' },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.definition(tags.function(tags.variableName))], color: 'var(--code-fn)' },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: 'var(--code-com)' },
])
/** In JSON and YAML the keys carry the colour of keys. */
const dataColours = HighlightStyle.define([{ tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--code-key)' }])

const look = EditorView.theme({
  '&': { backgroundColor: 'var(--surface)', color: 'var(--text)', fontSize: 'var(--fs-12)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px', fontVariantLigatures: 'none' },
  '.cm-content': { padding: '8px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 12px' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--text-3)', border: 'none' },
  '.cm-lineNumbers .cm-gutterElement': { minWidth: '38px', padding: '0 6px 0 0' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine, &.cm-focused .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '.cm-cursor, .cm-dropCursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--accent-line)' },
  '.cm-selectionMatch': { backgroundColor: 'var(--warn-soft)' },
  '.cm-matchingBracket, &.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)', outline: '1px solid var(--accent-line)' },
  '.cm-foldPlaceholder': { backgroundColor: 'var(--hover)', border: 'none', color: 'var(--text-3)', padding: '0 4px' },
  '.cm-badline': { backgroundColor: 'var(--bad-soft)', boxShadow: 'inset 2px 0 0 var(--bad)' },
  '.cm-badword': { textDecoration: 'underline wavy var(--bad) 1px', textUnderlineOffset: '3px' },
  '.cm-inline': { padding: '4px 12px 6px', font: 'var(--w-normal) var(--fs-12)/17px var(--font)', color: 'var(--bad)', display: 'flex', gap: '8px', alignItems: 'baseline', flexWrap: 'wrap', whiteSpace: 'pre-wrap' },
  '.cm-inline b': { fontWeight: 'var(--w-strong)' },
  '.cm-inline span': { color: 'var(--text-3)' },
  '.cm-tooltip': { backgroundColor: 'var(--surface)', border: '1px solid var(--line-strong)', borderRadius: 'var(--r-2)', boxShadow: 'var(--shadow-pop)', color: 'var(--text)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: 'var(--fs-12)', maxHeight: '240px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 8px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--accent-soft)', color: 'var(--text)' },
  '.cm-completionDetail': { color: 'var(--text-3)', fontStyle: 'normal', marginLeft: '10px' },
  '.cm-completionInfo': { padding: '6px 10px', fontSize: 'var(--fs-12)', maxWidth: '320px' },
  '.cm-completionMatchedText': { textDecoration: 'none', color: 'var(--accent)', fontWeight: 'var(--w-strong)' },
  '.cm-panels': { backgroundColor: 'var(--sunken)', color: 'var(--text)', borderColor: 'var(--line)' },
})

class Message extends WidgetType {
  readonly problem: CodeProblem
  constructor(problem: CodeProblem) { super(); this.problem = problem }
  override eq(other: Message): boolean { return JSON.stringify(other.problem) === JSON.stringify(this.problem) }
  override toDOM(): HTMLElement {
    const line = document.createElement('div')
    line.className = 'cm-inline'
    const words = document.createElement('b')
    words.textContent = this.problem.message
    const place = document.createElement('span')
    place.textContent = (this.problem.column ? `${this.problem.line}:${this.problem.column}` : `line ${this.problem.line}`) + (this.problem.note ? ` · ${this.problem.note}` : '')
    line.append(words, place)
    return line
  }
}

const setProblems = StateEffect.define<readonly CodeProblem[]>()

const problemField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    let next = marks.map(change.changes)
    for (const effect of change.effects) if (effect.is(setProblems)) next = marksOf(change.state, effect.value)
    return next
  },
  provide: (field) => EditorView.decorations.from(field),
})

function marksOf(state: EditorState, problems: readonly CodeProblem[]): DecorationSet {
  const marks: Range<Decoration>[] = []
  for (const problem of problems) {
    if (problem.line < 1) continue
    const line = state.doc.line(Math.min(problem.line, state.doc.lines))
    marks.push(Decoration.line({ class: 'cm-badline' }).range(line.from))
    const from = line.from + Math.max(0, (problem.column ?? 0) - 1)
    if (problem.column && from < line.to) {
      const word = /^[\w$]+|^./.exec(state.doc.sliceString(from, line.to))
      marks.push(Decoration.mark({ class: 'cm-badword' }).range(from, from + (word?.[0].length ?? 1)))
    }
    marks.push(Decoration.widget({ widget: new Message(problem), block: true, side: 1 }).range(line.to))
  }
  return Decoration.set(marks, true)
}

function languageOf(language: CodeLanguage): Extension {
  switch (language) {
    case 'javascript': return javascript()
    case 'json': return [json(), syntaxHighlighting(dataColours)]
    case 'yaml': return [yaml(), syntaxHighlighting(dataColours)]
    case 'text': return []
  }
}

/** CodeEditor is an editor for code and data. Escape, then Tab, leaves it by keyboard. */
export function CodeEditor({ label, value, onChange, language, readOnly, problems, complete, lines = true, fill, wrap, keepsTab = true, onSubmit }: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const latest = useRef({ onChange, onSubmit, complete })
  useEffect(() => { latest.current = { onChange, onSubmit, complete } })
  const told = useRef(new Set<string>())
  const fixed = useMemo(() => new Compartment(), [])
  const hint = useId()

  useEffect(() => {
    const parent = host.current
    if (!parent) return
    // One source for the life of the editor: completion tells sources apart by identity.
    const source: CompletionSource = (context) => latest.current.complete?.(context) ?? null
    const offers = [{ autocomplete: source }]
    const made = new EditorView({
      parent,
      state: EditorState.create({
        doc: value,
        extensions: [
          lines ? [lineNumbers(), foldGutter({ openText: '▾', closedText: '▸' }), highlightActiveLineGutter(), highlightActiveLine()] : [],
          history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightSelectionMatches(), indentUnit.of('  '),
          languageOf(language), syntaxHighlighting(colours), look, problemField,
          wrap ? EditorView.lineWrapping : [],
          complete ? EditorState.languageData.of(() => offers) : [],
          autocompletion({ icons: false }),
          keymap.of([
            { key: 'Mod-Enter', run: () => { latest.current.onSubmit?.(); return latest.current.onSubmit !== undefined } },
            ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...(keepsTab ? [indentWithTab] : []),
          ]),
          fixed.of([EditorState.readOnly.of(readOnly ?? false), EditorView.editable.of(!readOnly)]),
          EditorView.contentAttributes.of({ 'aria-label': label, 'aria-describedby': hint, spellcheck: 'false', tabindex: '0' }),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return
            const text = update.state.doc.toString()
            told.current.add(text)
            latest.current.onChange?.(text)
          }),
        ],
      }),
    })
    view.current = made
    return () => { made.destroy(); view.current = undefined }
    // The text and what may change go through the effects below; the rest makes a new editor.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [language, label, lines, wrap, fixed, hint, complete === undefined])

  useEffect(() => {
    const now = view.current
    if (!now) return
    const text = now.state.doc.toString()
    // A text that was told and has been typed past since is on its way round: only one from outside goes into the editor.
    if (text === value) told.current.clear()
    else if (!told.current.has(value)) now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value } })
  }, [value, language])
  useEffect(() => {
    view.current?.dispatch({ effects: fixed.reconfigure([EditorState.readOnly.of(readOnly ?? false), EditorView.editable.of(!readOnly)]) })
  }, [readOnly, fixed])
  useEffect(() => { view.current?.dispatch({ effects: setProblems.of(problems ?? []) }) }, [problems, language])

  return (
    <div className={`cm ${fill ? 'fill' : ''}`} ref={host}>
      <span id={hint} className="hidden-words">{readOnly ? 'Read only' : 'Escape, then Tab, leaves the editor'}</span>
    </div>
  )
}
