import type { Explained, ReachCount } from '../../api/admin'
import { countWords } from '../../ui/time'

const can: Record<string, [yes: string, no: string]> = { read: ['can read', 'can’t read'], update: ['can change', 'can’t change'], delete: ['can delete', 'can’t delete'] }

export interface VerdictWords { yes: boolean | 'part'; text: string; why: string; fieldOpen: boolean }

/** verdictOf answers in a sentence: may the user do this with the record, or with one field of it. */
export function verdictOf(answer: Explained, entity: string, verb: string, field: string | undefined): VerdictWords {
  const at = answer.verbs.find((v) => v.verb === verb)
  const who = answer.user.name || answer.user.email
  const [yes, no] = can[verb] ?? [`may ${verb}`, `may not ${verb}`]
  const of = field === undefined ? undefined : answer.fields.find((f) => f.name === field)
  const fieldOpen = of === undefined ? true : (verb === 'update' ? of.edit : of.read).length > 0
  const what = of ? `${of.name} of this ${entity}` : `this ${entity}`
  const asleep = !answer.user.active
  if (!at?.allowed) {
    const sets = (at?.sets.length ?? 0) > 0
    const why = !sets && !at?.reached ? `No permission set allows it, and nothing shares this one with ${who}.`
      : !sets ? 'Sharing opens it, but no permission set allows it.'
      : `The permissions allow ${entity}, but nothing opens this one ${verb === 'read' ? 'to' : `for ${verb} to`} ${who}.`
    return { yes: false, text: `No. ${who} ${no} ${what}.`, why: `${why} The API answers ${at?.status ?? 403} ${at?.code ?? ''}.`.replace(' .', '.'), fieldOpen }
  }
  if (!fieldOpen) return { yes: false, text: `No. ${who} ${no} ${what}.`, why: `${who} ${yes} the record, but no permission set opens this field.`, fieldOpen }
  const reasons = answer.ways.flatMap((w) => w.reasons).filter((r) => r.opens.includes(verb)).map((r) => r.text)
  const why = `${reasons[0] ?? 'it is open'}${reasons.length > 1 ? `, and ${reasons.length - 1} more ${reasons.length === 2 ? 'reason' : 'reasons'}` : ''}.`
  if (asleep) return { yes: 'part', text: `${who} is deactivated.`, why: `With an active user: ${why}`, fieldOpen }
  return { yes: true, text: `Yes. ${who} ${yes} ${what}.`, why: why.charAt(0).toUpperCase() + why.slice(1), fieldOpen }
}

/** countTo is how far records are counted (contract P12). */
const countTo = 10_000

/** foundWords says how many records there are, or match. A count that ended early, among many that are looked at, is a least one. */
export function foundWords({ count, more }: ReachCount, filtered: boolean): string {
  const one = count === 1 && !more
  if (!filtered) return `${countWords(count, more)} ${one ? 'record' : 'records'}`
  const found = more && count < countTo ? `at least ${countWords(count)}` : countWords(count, more)
  return `${found} that ${one ? 'matches' : 'match'}`
}
