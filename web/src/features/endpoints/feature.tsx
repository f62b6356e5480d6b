import { IconWorldUpload } from '@tabler/icons-react'
import { ask } from '../../api/client'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'

const crumbs = [{ label: 'Settings' }, { label: 'Integrations and API' }, { label: 'Endpoints' }]

/** endpoints: what the tenant publishes under /public/v1/custom. */
export const endpoints: Feature = {
  name: 'endpoints',
  pages: [
    { path: '/settings/endpoints', title: 'Custom endpoints', crumbs, load: () => import('./list'), needs: ['manage_endpoints'] },
    { path: '/settings/endpoints/$slug', title: 'Custom endpoint', crumbs: [...crumbs, { label: 'Custom endpoints', to: paths.endpoints() }], load: () => import('./page'), needs: ['manage_endpoints'] },
  ],
  rail: [{ group: 'settings', order: 30, under: 'Integrations and API', label: 'Custom endpoints', icon: IconWorldUpload, to: paths.endpoints(), needs: ['manage_endpoints'] }],
  palette: [{
    id: 'endpoints', title: 'Custom endpoints', prefix: '/', order: 40, needs: ['manage_endpoints'],
    find: async (text, { signal }) => {
      const list = await ask('GET endpoints', { signal })
      return list.filter((e) => e.slug.includes(text.toLowerCase())).slice(0, 6).map((e) => ({ id: e.slug, label: e.slug, note: e.lastRun?.status === 'failed' ? 'last run failed' : `runs ${e.target.name}`, bad: e.lastRun?.status === 'failed', icon: IconWorldUpload, to: paths.endpoints(e.slug) }))
    },
  }],
}
