import { describe, expect, it } from 'vitest'
import type { ImportPart, ImportedPart } from '../../api/admin'
import { ApiError } from '../../api/error'
import { formatOf, importFile, Interrupted, type Input, type Standing } from './parts'

const bytesOf = (text: string) => new TextEncoder().encode(text)
const inputOf = (bytes: Uint8Array): Input => ({ size: bytes.length, bytes: (from, to) => Promise.resolve(bytes.slice(from, to)) })
const never = new AbortController().signal

/** server imports lines of a file, `most` of them with a part, as the real one divides them: whole lines only. */
function server(most = 3) {
  const lines: string[] = []
  const parts: ImportPart[] = []
  const send = (part: ImportPart): Promise<ImportedPart> => {
    parts.push(part)
    let used = 0
    let line = part.line
    const found = part.text.split(/(?<=\n)/)
    if (!part.last && !found.at(-1)?.endsWith('\n')) found.pop()
    for (const one of found.slice(0, most)) { used += bytesOf(one).length; lines.push(one); line++ }
    const offset = part.offset + used
    const finished = part.last === true && used === bytesOf(part.text).length
    return Promise.resolve({ input: 'known', head: 0, offset, line, behind: 0, by: part.by ?? '', spreadsheet: false, created: part.dryRun ? line - part.line : lines.length, updated: 0, unchanged: 0, failed: 0, failures: [], notes: ['id: left out'], finished })
  }
  return { lines, parts, send }
}

describe('importFile', () => {
  it('sends a file whole, whatever its characters', async () => {
    const text = Array.from({ length: 4000 }, (_, i) => `{"name": "${'⁂é'.repeat(i % 40)} ${i}"}\n`).join('')
    const s = server(100)
    const told: Standing[] = []
    const end = await importFile(inputOf(bytesOf(text)), { format: 'ndjson' }, 'front', s.send, (at) => told.push(at), never)
    expect(s.lines.join('')).toBe(text)
    expect(end).toMatchObject({ finished: true, created: 4000, size: bytesOf(text).length, notes: ['id: left out'] })
    expect(told.at(-1)).toMatchObject({ finished: true })
    expect(new Set(s.parts.map((p) => p.run)).size).toBe(1)
  })
  it('sends more where a record is longer than a part', async () => {
    const s = server()
    await importFile(inputOf(bytesOf(`${'x'.repeat(300_000)}\nend`)), { format: 'ndjson' }, 'front', s.send, () => undefined, never)
    expect(s.lines.map((l) => l.length)).toEqual([300_001, 3])
  })
  it('adds up the parts of a dry run', async () => {
    const s = server(2)
    const end = await importFile(inputOf(bytesOf('a\nb\nc\nd\ne\n')), { format: 'ndjson', dryRun: true }, 'front', s.send, () => undefined, never)
    expect(end.created).toBe(5)
  })
  it('says that a file is not in UTF-8', async () => {
    await expect(importFile(inputOf(new Uint8Array([0x4d, 0xfc, 0x6c, 0x0a])), { format: 'csv' }, 'front', server().send, () => undefined, never)).rejects.toThrow('not in UTF-8')
  })
  it('asks again while the server is busy', async () => {
    const s = server()
    let busy = 2
    const send = (part: ImportPart) => (busy-- > 0 ? Promise.reject(new ApiError({ status: 503, code: 'OVERLOADED', message: 'busy', retryAfter: 0.001 })) : s.send(part))
    await importFile(inputOf(bytesOf('a\n')), { format: 'ndjson' }, 'front', send, () => undefined, never)
    expect(s.lines).toEqual(['a\n'])
  })
  it('tells of an import that was interrupted, and goes on where it stands', async () => {
    const stands: ImportedPart = { input: 'known', head: 0, offset: 4, line: 3, behind: 4, by: 'email', spreadsheet: false, created: 2, updated: 0, unchanged: 0, failed: 0, failures: [], notes: [], finished: false }
    const refuse = () => Promise.reject(new ApiError({ status: 409, code: 'CONFLICT', message: 'interrupted', details: { stands } }))
    const file = inputOf(bytesOf('a\nb\nc\n'))
    await expect(importFile(file, { format: 'ndjson' }, 'front', refuse, () => undefined, never)).rejects.toThrow(Interrupted)
    const s = server()
    await importFile(file, { format: 'ndjson' }, { at: stands }, s.send, () => undefined, never)
    expect(s.parts[0]).toMatchObject({ offset: 4, line: 3, before: 'a\nb\n', text: 'c\n', input: 'known', by: 'email' })
    const anew = server()
    await importFile(file, { format: 'ndjson' }, 'anew', anew.send, () => undefined, never)
    expect(anew.parts[0]).toMatchObject({ offset: 0, restart: true })
    expect(anew.lines.join('')).toBe('a\nb\nc\n')
  })
  it('ends when it is stopped', async () => {
    const stop = new AbortController()
    const busy = () => { stop.abort(); return Promise.reject(new ApiError({ status: 503, code: 'OVERLOADED', message: 'busy', retryAfter: 30 })) }
    await expect(importFile(inputOf(bytesOf('a\n')), { format: 'ndjson' }, 'front', busy, () => undefined, stop.signal)).rejects.toThrow()
  })
})

it('knows a format by the name of a file', () => {
  expect(['a.csv', 'a.NDJSON', 'a.jsonl', 'a'].map(formatOf)).toEqual(['csv', 'ndjson', 'ndjson', 'csv'])
})
