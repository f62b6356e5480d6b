/** A sharing rule as the configuration has it. Either owned_by_role or where; either share_with_role or share_with. */
export interface RuleValue {
  entity: string
  owned_by_role?: string
  where?: Record<string, unknown>
  share_with_role?: string
  share_with?: 'internal' | 'external' | 'everyone'
  access: 'read' | 'edit'
}

const whom = { internal: 'your staff', external: 'external users', everyone: 'everybody' } as const

/** whomWords says whom a rule speaks to. */
export function whomWords(rule: RuleValue): string { return rule.share_with ? whom[rule.share_with] : rule.share_with_role ?? '–' }

/** whichWords says which records a rule shares. */
export function whichWords(rule: RuleValue): string {
  if (rule.owned_by_role) return `owned by ${rule.owned_by_role}`
  const where = Object.entries(rule.where ?? {})
  return where.length === 0 ? '–' : `where ${where.map(([field, v]) => `${field} is ${valueWords(v)}`).join(' and ')}`
}

function valueWords(v: unknown): string {
  const viewer = typeof v === 'string' ? /^\{\{user\.(\w+)\}\}$/.exec(v)?.[1] : undefined
  if (viewer) return `the viewer’s ${viewer}`
  return typeof v === 'string' ? v : JSON.stringify(v)
}

/** One condition as it is typed. */
export interface Condition { field: string; value: string }

/** conditionsOf reads the conditions of a rule for the form; whereOf writes them back, by the types of their fields. */
export function conditionsOf(rule: RuleValue): Condition[] {
  return Object.entries(rule.where ?? {}).map(([field, v]) => ({ field, value: typeof v === 'string' ? v : JSON.stringify(v) }))
}

export function whereOf(conditions: readonly Condition[], typeOf: (field: string) => string | undefined): Record<string, unknown> {
  return Object.fromEntries(conditions.filter((c) => c.field !== '').map((c) => [c.field, typed(c.value, typeOf(c.field))]))
}

function typed(text: string, type: string | undefined): unknown {
  if (type === 'number' && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text)
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  return text
}
