// What a component finds, read from the declarations that `gatehouse types` prints: one list for the console's editor and for others.
import text from '../../../../internal/typings/globals.d.ts?raw'

/** Member is a name with what its declaration says of it. */
export interface Member {
  name: string
  kind: 'function' | 'class' | 'property' | 'variable'
  /** params are the names of what must be given. */
  params: readonly string[]
  /** type is the declaration behind the name. */
  type: string
  doc: string
}

export interface Typings {
  globals: readonly Member[]
  /** members of a variable, or of an interface. */
  members: Readonly<Record<string, readonly Member[]>>
}

/** parse reads declarations of the form that globals.d.ts has: one a line, or over lines up to the semicolon. */
export function parse(source: string): Typings {
  const globals: Member[] = []
  const members: Record<string, Member[]> = {}
  let [doc, block, statement] = ['', undefined as string | undefined, '']
  for (const line of source.split('\n')) {
    const trimmed = line.trim()
    const said = /^\/\*\*\s*(.*?)\s*\*\/$/.exec(trimmed)
    if (said) { doc = said[1] ?? ''; continue }
    if (trimmed === '' || trimmed.startsWith('//')) continue
    const opens = /^(?:declare )?(const|class|interface) (\w+)(?:.*extends \w+)?(?::)? \{$/.exec(line)
    if (opens) {
      block = opens[2] ?? ''
      members[block] = []
      if (opens[1] !== 'interface') globals.push({ name: block, kind: opens[1] === 'class' ? 'class' : 'variable', params: [], type: '', doc })
      doc = ''
      continue
    }
    if (/^\};?$/.test(line)) { block = undefined; continue }
    statement += (statement === '' ? '' : ' ') + trimmed
    if (!statement.endsWith(';') || nesting(statement) > 0) continue
    const found = declaration(statement.replace(/^declare (function|const) /, '').replace(/^(readonly|static) /, '').slice(0, -1))
    if (found && !statement.startsWith('type ')) {
      const one = { ...found, doc }
      if (block !== undefined) members[block]?.push(one)
      else if (statement.startsWith('declare ')) globals.push(one.kind === 'property' ? { ...one, kind: 'variable' } : one)
    }
    [doc, statement] = ['', '']
  }
  return { globals, members }
}

/** declaration reads "name: type" and "name<T>(params): type". */
function declaration(one: string): Omit<Member, 'doc'> | undefined {
  const name = /^\w+/.exec(one)?.[0]
  if (name === undefined || name === 'constructor') return undefined
  let rest = one.slice(name.length)
  if (rest.startsWith('<')) rest = rest.slice(rest.indexOf('>(') + 1)
  if (!rest.startsWith('(')) return { name, kind: 'property', params: [], type: rest.replace(/^\??:\s*/, '') }
  const end = closing(rest)
  const params = split(rest.slice(1, end)).filter((p) => p !== '' && !/^\w+\?/.test(p) && !p.startsWith('...')).map((p) => /^\w+/.exec(p)?.[0] ?? p)
  return { name, kind: 'function', params, type: rest.slice(end + 1).replace(/^:\s*/, '') }
}

const step = (c: string | undefined): number => (c !== undefined && '({['.includes(c) ? 1 : c !== undefined && ')}]'.includes(c) ? -1 : 0)

function nesting(of: string): number {
  let depth = 0
  for (const c of of) depth += step(c)
  return depth
}

/** closing gives where the bracket closes that opens a text. */
function closing(of: string): number {
  let depth = 0
  for (let i = 0; i < of.length; i++) {
    depth += step(of[i])
    if (depth === 0) return i
  }
  return of.length
}

/** split divides parameters at the commas between them. */
function split(of: string): string[] {
  const list: string[] = []
  let [depth, from] = [0, 0]
  for (let i = 0; i < of.length; i++) {
    depth += step(of[i])
    if (of[i] === ',' && depth === 0) { list.push(of.slice(from, i).trim()); from = i + 1 }
  }
  return [...list, of.slice(from).trim()].filter((p) => p !== '')
}

export const typings = parse(text)
