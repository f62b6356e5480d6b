import { IconApi, IconListSearch } from '@tabler/icons-react'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'

/** audit: every request that the tenant keeps, with the gate at which it stopped. */
export const audit: Feature = {
  name: 'audit',
  pages: [{
    path: '/settings/audit', title: 'Audit log', crumbs: [{ label: 'Settings' }, { label: 'Integrations and API' }, { label: 'Endpoints' }],
    load: () => import('./audit'), needs: ['manage_endpoints'],
  }],
  rail: [{ group: 'settings', order: 14, label: 'Audit log', icon: IconApi, to: paths.audit(), under: 'Integrations and API', needs: ['manage_endpoints'] }],
  palette: [{
    id: 'audit', title: 'Audit log', order: 80, needs: ['manage_endpoints'],
    find: (text) => (/^[0-9a-f]{8}-[0-9a-f-]{4,27}$/.test(text.trim()) ? [{ id: text, label: 'Find this request', note: text.trim(), icon: IconListSearch, to: paths.auditWhere({ q: text.trim() }) }] : []),
  }],
}
