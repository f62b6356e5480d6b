import { IconArrowRight, IconBraces, IconCalendar, IconClock, IconHash, IconLetterT, IconList, IconListCheck, IconToggleLeft, type Icon } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { ask, type Gives } from '../../api/client'

export type Kind = Gives<'GET config/kinds'>[number]
type Member = Kind['members'][number]

/** useKinds loads what the server says about the kinds of objects: their members, types and values. */
export function useKinds() {
  return useQuery({ queryKey: ['config', 'kinds'], queryFn: ({ signal }) => ask('GET config/kinds', { signal }), staleTime: Infinity })
}

/** memberOf finds a member of a kind by its path: memberOf(kinds, 'entity', 'fields', 'type'). */
export function memberOf(kinds: readonly Kind[] | undefined, kind: string, ...path: string[]): Member | undefined {
  let members: readonly Member[] | undefined = kinds?.find((k) => k.kind === kind)?.members
  let found: Member | undefined
  for (const name of path) {
    found = members?.find((m) => m.name === name)
    members = found?.members
  }
  return found
}

const icons: Record<string, Icon> = {
  text: IconLetterT, number: IconHash, boolean: IconToggleLeft, date: IconCalendar, datetime: IconClock, select: IconList,
  multiselect: IconListCheck, reference: IconArrowRight, multireference: IconArrowRight, json: IconBraces,
}

/** iconOf is the icon of a field type. */
export function iconOf(type: string): Icon { return icons[type] ?? IconLetterT }

/** kindWords is a kind in a sentence. */
export function kindWords(kind: string): string { return kind.replaceAll('_', ' ') }

/** The headings that objects stand under, in the order in which a change writes them. */
export const groups: readonly { title: string; kinds: readonly string[] }[] = [
  { title: 'Entities and fields', kinds: ['entity', 'user_fields'] },
  { title: 'Access', kinds: ['role', 'permission_set', 'sharing_rule', 'user'] },
  { title: 'What runs', kinds: ['module', 'logic_component', 'automation', 'custom_endpoint'] },
  { title: 'Settings', kinds: ['tenant', 'email_template'] },
]

/** Kinds that the history has besides the configuration's. */
export const historyKinds = [...groups.flatMap((g) => g.kinds).filter((k) => k !== 'email_template'), 'api_key', 'webhook_token', 'jwt_key'] as const
