import { useQuery } from '@tanstack/react-query'
import { ask, type Gives } from '../../api/client'

/** What a draft may name: entity types with fields, components, types of nodes. */
export type Names = Gives<'GET drafts/names'>
export type EntityName = Names['entities'][number]
export type NodeType = Names['nodes'][number]
export type NodeMember = NodeType['members'][number]

/** useNames loads what a draft may name. */
export function useNames() {
  return useQuery({ queryKey: ['names'], queryFn: ({ signal }) => ask('GET drafts/names', { signal }), staleTime: 60_000 })
}
