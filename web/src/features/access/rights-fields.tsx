import { useMay } from '../../app/session'
import { problemAt, useObjects, type Problem } from '../../app/objects'
import { CheckField } from '../../ui/field'
import { ManyField, SelectField } from '../../ui/select'
import type { UserValue } from './user-value'

/** RightsFields edits what decides a user's rights: role, permission sets, ownership of the tenant. */
export function RightsFields({ value, onChange, problems, mayOwn }: { value: UserValue; onChange: (patch: Partial<UserValue>) => void; problems: readonly Problem[]; mayOwn: boolean }) {
  const may = useMay(['manage_users'])
  const roles = useObjects<{ name: string }>('role', may)
  const sets = useObjects<{ name: string }>('permission_set', may)
  const external = value.type === 'external'
  const options = (list: readonly { name: string }[] | undefined, has: readonly string[]) =>
    [...new Set([...has, ...(list ?? []).map((o) => o.name)])].map((name) => ({ value: name, label: name }))
  return (
    <>
      <SelectField label="Role" clearable placeholder="No role" value={value.role ?? null} options={options(roles.data, value.role ? [value.role] : [])} disabled={!may}
        onChange={(role) => { onChange({ role: role ?? '' }) }} error={problemAt(problems, 'role')} help="The place in the role tree: who stands above sees what this user owns." />
      <ManyField label="Permission sets" value={value.permission_sets ?? []} options={options(sets.data, value.permission_sets ?? [])} disabled={!may}
        onChange={(list) => { onChange({ permission_sets: list }) }} error={problemAt(problems, 'permission_sets')}
        help={external ? 'What may be done with entities and fields. System permissions in them never count for external users.' : 'What may be done with entities and fields. Several sets add up.'} />
      {!external && <CheckField label="Owner of the tenant" checked={value.owner ?? false} disabled={!mayOwn} onChange={(owner) => { onChange({ owner }) }} error={problemAt(problems, 'owner')}
        help={mayOwn ? 'May do everything here.' : 'Only an owner can make another user an owner.'} />}
    </>
  )
}
