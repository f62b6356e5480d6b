/** A user as the configuration has it. The password is written and never read. */
export interface UserValue {
  email: string
  name?: string
  locale?: string
  type?: 'internal' | 'external'
  owner?: boolean
  role?: string
  permission_sets?: string[]
  managed?: Record<string, unknown>
  active?: boolean
}

/** withRights is a user's value with what this page changes; members that say nothing are left out. */
export function withRights(value: UserValue, patch: Partial<UserValue>): UserValue {
  const next: UserValue = { ...value, ...patch }
  if (!next.role) delete next.role
  if (!next.permission_sets?.length) delete next.permission_sets
  if (!next.owner) delete next.owner
  if (!next.locale) delete next.locale
  return next
}
