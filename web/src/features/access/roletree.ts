/** A role as the configuration has it. */
export interface RoleValue { name: string; parent?: string }

export interface RoleNode { name: string; children: RoleNode[] }

/** treeOf orders roles under their parents, by name; a role whose parent is unknown stands at the top. */
export function treeOf(roles: readonly RoleValue[]): RoleNode[] {
  const nodes = new Map(roles.map((r) => [r.name, { name: r.name, children: [] as RoleNode[] }]))
  const top: RoleNode[] = []
  for (const role of [...roles].sort((a, b) => a.name.localeCompare(b.name))) {
    const node = nodes.get(role.name)
    if (!node) continue
    const above = role.parent === undefined ? undefined : nodes.get(role.parent)
    if (above) above.children.push(node)
    else top.push(node)
  }
  return top
}
