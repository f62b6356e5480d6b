import { IconDevices } from '@tabler/icons-react'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'

/** staff: signing in, one's own account, and the sessions of the tenant's staff. */
export const staff: Feature = {
  name: 'staff',
  pages: [
    { path: '/sign-in', title: 'Sign in', load: () => import('./sign-in'), bare: true },
    { path: '/forgot', title: 'Forgotten password', load: () => import('./forgot'), bare: true },
    { path: '/reset-password', title: 'New password', load: () => import('./reset'), bare: true },
    { path: '/enrol', title: 'Second factor', load: () => import('./enrol'), bare: true },
    { path: '/account', title: 'Account', load: () => import('./account') },
    { path: '/settings/sessions', title: 'Sessions', crumbs: [{ label: 'Settings' }, { label: 'Access and security' }], load: () => import('./sessions'), needs: ['manage_users'] },
  ],
  rail: [
    { group: 'settings', order: 60, under: 'Access and security', label: 'Sessions', icon: IconDevices, to: paths.sessions(), needs: ['manage_users'] },
  ],
}
