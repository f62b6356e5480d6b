import { IconUsers } from '@tabler/icons-react'
import type { Feature, Needs } from '../../app/feature'
import { ask } from '../../api/client'
import { paths } from '../../app/paths'

const people: Needs = ['manage_users', 'can_manage_external_users']
const permissions: Needs = ['manage_permissions']
const access = [{ label: 'Settings' }, { label: 'Access and security' }] as const

/** access: users and what decides what they may do: roles, permission sets, sharing rules, External Identity. */
export const accessFeature: Feature = {
  name: 'access',
  pages: [
    { path: '/users', title: 'Users', load: () => import('./users'), needs: people },
    { path: '/settings/external-users', title: 'External users', crumbs: access, load: () => import('./external-users'), needs: ['tenant_settings', ...people] },
    { path: '/settings/roles', title: 'Roles', crumbs: access, load: () => import('./roles'), needs: permissions },
    { path: '/settings/permission-sets', title: 'Permission sets', crumbs: access, load: () => import('./permission-sets'), needs: permissions },
    { path: '/settings/permission-sets/$name', title: 'Permission set', crumbs: [...access, { label: 'Permission sets', to: paths.permissionSets() }], load: () => import('./permission-set'), needs: permissions },
    { path: '/settings/sharing-rules', title: 'Sharing rules', crumbs: access, load: () => import('./sharing-rules'), needs: permissions },
  ],
  rail: [
    { group: 'users', order: 10, label: 'Users', icon: IconUsers, to: paths.users(), needs: people },
    { group: 'settings', order: 21, under: 'Access and security', label: 'External users', icon: IconUsers, to: paths.externalUsers(), needs: ['tenant_settings', ...people] },
    { group: 'settings', order: 22, under: 'Access and security', label: 'Users', icon: IconUsers, to: paths.users(), needs: people },
    { group: 'settings', order: 23, under: 'Access and security', label: 'Roles', icon: IconUsers, to: paths.roles(), needs: permissions },
    { group: 'settings', order: 24, under: 'Access and security', label: 'Permission sets', icon: IconUsers, to: paths.permissionSets(), needs: permissions },
    { group: 'settings', order: 25, under: 'Access and security', label: 'Sharing rules', icon: IconUsers, to: paths.sharingRules(), needs: permissions },
  ],
  palette: [{
    id: 'users', title: 'Users', prefix: '@', order: 40, needs: people,
    find: async (text, { signal }) => {
      if (text === '') return []
      const found = await ask('GET users', { query: { search: text, limit: 6 }, signal })
      return found.map((u) => ({ id: u.id, label: u.name || u.email, note: u.email, icon: IconUsers, to: u.type === 'external' ? paths.externalUsers(u.email) : paths.users(u.email) }))
    },
  }],
}
