import { useMutation } from '@tanstack/react-query'
import { ask, type Gives } from '../../api/client'
import { asError, type ApiError } from '../../api/error'

export type Outcome = Gives<'POST runs'>
export type Problem = Outcome['problems'][number]
export type Step = NonNullable<Outcome['trace']>[number]
export type Measure = Outcome['used'][number]
export type RunLine = Gives<'GET runs'>[number]
export type RunDetail = Gives<'GET runs/{id}'>

/** What is tried: a stored target, or a draft in its place. */
export interface Try { kind: 'component' | 'automation'; name: string; draft: unknown; input: unknown; as: string | null; event: { id: string; kind: string } | null }

/** useTry runs something and keeps nothing (contract X9). */
export function useTry() {
  return useMutation<Outcome, ApiError, Try>({
    mutationFn: async ({ kind, name, draft, input, as, event }) => {
      try { return await ask('POST runs', { body: { target: { kind, name }, draft, input, as, event } }) } catch (thrown) { throw asError(thrown) }
    },
  })
}

/** sampleOf makes an input that has a value for each declared one. */
export function sampleOf(declared: readonly { name: string; type: string }[]): Record<string, unknown> {
  const values: Record<string, unknown> = { text: 'text', number: 1, boolean: true, json: {} }
  return Object.fromEntries(declared.map((d) => [d.name, values[d.type] ?? null]))
}

const kept = (kind: string, name: string) => `gatehouse.sample.${kind}/${name}`

/** keepSample remembers the last input in this browser, for this session. */
export function keepSample(kind: string, name: string, text: string): void {
  try { sessionStorage.setItem(kept(kind, name), text) } catch { /* storage is full or off */ }
}

/** sampleFor gives the input that was used last, or one of the declared inputs. */
export function sampleFor(kind: string, name: string, declared: readonly { name: string; type: string }[]): string {
  return sessionStorage.getItem(kept(kind, name)) ?? JSON.stringify(sampleOf(declared), null, 2)
}
