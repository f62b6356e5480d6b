import { IconApi, IconKey, IconPlus } from '@tabler/icons-react'
import { ask } from '../../api/client'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'

/** keys: the API keys of the tenant; who sees and changes which is the server's to say. */
export const keys: Feature = {
  name: 'keys',
  pages: [{
    path: '/settings/api-keys', title: 'API keys', crumbs: [{ label: 'Settings' }, { label: 'Integrations and API' }, { label: 'Endpoints' }],
    load: () => import('./keys'),
  }],
  rail: [{ group: 'settings', order: 12, label: 'API keys', icon: IconApi, to: paths.apiKeys(), under: 'Integrations and API' }],
  palette: [
    {
      id: 'keys', title: 'API keys', order: 40,
      find: async (text, { signal }) => {
        const found = await ask('GET keys', { query: { limit: 200 }, signal })
        const needle = text.toLowerCase()
        return found.filter((k) => k.name.toLowerCase().includes(needle) || k.prefix.startsWith(needle)).slice(0, 8)
          .map((k) => ({ id: k.id, label: k.name, note: k.user.name ?? k.user.email ?? k.prefix, icon: IconKey, to: paths.apiKeys(k.id) }))
      },
    },
    {
      id: 'new-key', title: 'Do', prefix: '>', order: 90,
      find: (text) => ('make an api key new key'.includes(text.toLowerCase()) ? [{ id: 'new-key', label: 'Make an API key', icon: IconPlus, to: `${paths.apiKeys()}?new=1` }] : []),
    },
  ],
}
