import { ask } from '../../api/client'
import type { ImportPart, ImportedPart } from '../../api/admin'
import { ApiError, asError } from '../../api/error'

// Files go to the server and come from it by parts (contract Y17). The server reads them: here is only which bytes are sent.

/** Input is what is read from a File: its size, and slices of it. */
export interface Input { size: number; bytes: (from: number, to: number) => Promise<Uint8Array> }

export function inputOf(file: Blob): Input {
  return { size: file.size, bytes: async (from, to) => new Uint8Array(await file.slice(from, to).arrayBuffer()) }
}

/** How an import reads its file, and finds records. */
export type How = Pick<ImportPart, 'format' | 'by' | 'spreadsheet' | 'dryRun'>

/** Standing is where an import stands; counts are those of the whole. */
export interface Standing extends ImportedPart { run: string; /** how many bytes the file has */ size: number }

/** Interrupted is thrown where an import of the file was begun before: it is continued or begun anew. */
export class Interrupted extends Error {
  readonly at: ImportedPart
  constructor(at: ImportedPart) { super('an import of this file was interrupted'); this.name = 'Interrupted'; this.at = at }
}

const leastPart = 64 * 1024
const largestPart = 2 * 1024 * 1024 + 64 * 1024
/** A busy server is asked again so many times. */
const patience = 8

/** send is what importFile asks the server with; tests have another. */
type Send = (part: ImportPart, signal: AbortSignal) => Promise<ImportedPart>

export function sendTo(entity: string): Send {
  return (part, signal) => ask('POST data/{entity}/import', { params: { entity }, body: part, signal })
}

/** From is where an import begins: at the front, anew after an interruption, or where it stands. */
export type From = 'front' | 'anew' | { at: ImportedPart; run?: string }

/**
 * importFile sends a file from where it stands, and gives what came of it. told hears of each part. It throws Interrupted,
 * the ApiError that stopped it, and an AbortError when the signal did; what was told last has had effect.
 */
export async function importFile(input: Input, how: How, from: From, send: Send, told: (s: Standing, failures: ImportedPart['failures']) => void, signal: AbortSignal): Promise<Standing> {
  const begun = typeof from === 'object' ? from.at : undefined
  const asBegun = begun ? { ...how, by: begun.by, spreadsheet: begun.spreadsheet } : how
  const run = (typeof from === 'object' ? from.run : undefined) ?? newRun()
  let at: ImportedPart = begun ?? { input: '', head: 0, offset: 0, line: 1, behind: 0, by: '', spreadsheet: false, created: 0, updated: 0, unchanged: 0, failed: 0, failures: [], notes: [], finished: false }
  let before = begun && !(typeof from === 'object' && from.run) ? await text(input, at.offset - at.behind, at.offset) : undefined
  let size = leastPart
  const notes = new Set<string>(at.notes)
  while (!at.finished) {
    const end = Math.min(at.offset + size, input.size)
    const part: ImportPart = {
      ...asBegun, run, offset: at.offset, line: at.line, text: await text(input, at.offset, end, end < input.size), last: end === input.size,
      ...(at.offset > 0 ? { input: at.input, ...(how.format === 'csv' ? { head: await text(input, 0, at.head) } : {}) } : {}),
      ...(before === undefined ? {} : { before }), ...(from === 'anew' && at.offset === 0 ? { restart: true } : {}),
    }
    const next = await patiently(() => send(part, signal), signal).catch((thrown: unknown) => { throw interruption(thrown) ?? thrown })
    if (next.offset === at.offset && !next.finished) {
      if (end === input.size) throw new ApiError({ status: 0, code: 'CONSOLE_ERROR', message: 'the server reads nothing of the rest of the file' })
      size = Math.min(2 * size, largestPart)
      continue
    }
    size = Math.min(Math.max(Math.ceil(1.25 * (next.offset - at.offset)), leastPart), largestPart)
    for (const note of next.notes) notes.add(note)
    at = { ...next, ...(how.dryRun ? added(at, next) : {}), notes: [...notes] }
    before = undefined
    told({ ...at, run, size: input.size }, next.failures)
  }
  return { ...at, run, size: input.size }
}

type Counts = Pick<ImportedPart, 'created' | 'updated' | 'unchanged' | 'failed'>

/** added gives the counts of a dry run, whose parts tell of themselves alone. */
function added(a: Counts, b: Counts): Counts {
  return { created: a.created + b.created, updated: a.updated + b.updated, unchanged: a.unchanged + b.unchanged, failed: a.failed + b.failed }
}

/** text decodes bytes of the input; of a part that is cut within a character the rest of it is left out. */
async function text(input: Input, from: number, to: number, cut = false): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await input.bytes(from, to), { stream: cut })
  } catch (thrown) {
    if (thrown instanceof TypeError) throw new ApiError({ status: 0, code: 'CONSOLE_ERROR', message: 'the file is not in UTF-8: save it as “CSV UTF-8”, or convert it' })
    throw thrown
  }
}

/** interruption gives the Interrupted of an answer that says where the import stands. */
function interruption(thrown: unknown): Interrupted | undefined {
  const stands = asError(thrown).details['stands']
  return stands !== null && typeof stands === 'object' ? new Interrupted(stands as ImportedPart) : undefined
}

/** patiently asks again while the server is busy or the limit of requests is reached. */
export async function patiently<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let trial = 1; ; trial++) {
    try {
      return await work()
    } catch (thrown) {
      const error = asError(thrown)
      if ((error.status !== 503 && error.status !== 429) || trial === patience) throw thrown
      await pause(Math.min(error.retryAfter ?? 1, 30) * 1000, signal)
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => { clearTimeout(timer); reject(new DOMException('stopped', 'AbortError')) }
    const timer = setTimeout(() => { signal.removeEventListener('abort', stop); resolve() }, ms)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
  })
}

/** newRun invents the name of a run; it needs no secure origin, as randomUUID does. */
function newRun(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** formatOf gives the format of a file by its name. */
export function formatOf(name: string): 'csv' | 'ndjson' {
  return /\.(ndjson|jsonl)$/i.test(name) ? 'ndjson' : 'csv'
}
