import type { Feature } from '../../app/feature'

/** staff: signing in, one's own account, and the sessions of the tenant's staff. */
export const staff: Feature = {
  name: 'staff',
  pages: [
    { path: '/sign-in', title: 'Sign in', load: () => import('./sign-in'), bare: true },
    { path: '/forgot', title: 'Forgotten password', load: () => import('./forgot'), bare: true },
    { path: '/reset', title: 'New password', load: () => import('./reset'), bare: true },
  ],
  rail: [],
}
