import { IconBraces } from '@tabler/icons-react'
import { paths } from '../../app/paths'
import type { Feature } from '../../app/feature'
import { ask } from '../../api/client'

const crumbs = [{ label: 'Build' }, { label: 'Logic components', to: paths.components() }]

/** components: JavaScript that a tenant's endpoints and flows run. */
export const components: Feature = {
  name: 'components',
  pages: [
    { path: '/build/components', title: 'Logic components', crumbs: [{ label: 'Build' }], load: () => import('./list'), needs: ['manage_endpoints'] },
    { path: '/build/components/$name', title: 'Logic component', crumbs, load: () => import('./page'), needs: ['manage_endpoints'] },
  ],
  rail: [{ group: 'build', order: 20, label: 'Logic components', icon: IconBraces, to: paths.components(), needs: ['manage_endpoints'] }],
  palette: [{
    id: 'components', title: 'Logic components', order: 30, needs: ['manage_endpoints'],
    find: async (text, { signal }) => {
      const names = await ask('GET drafts/names', { signal })
      const found = names.components.filter((c) => c.name.includes(text.toLowerCase())).slice(0, 6)
      return [
        ...found.map((c) => ({ id: c.name, label: c.name, note: 'Logic component', icon: IconBraces, to: paths.components(c.name) })),
        ...('new logic component'.includes(text.toLowerCase()) && text !== '' ? [{ id: 'new-component', label: 'New logic component', icon: IconBraces, to: `${paths.components()}?new=1` }] : []),
      ]
    },
  }],
}
