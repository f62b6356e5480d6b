import { IconBinaryTree2 } from '@tabler/icons-react'
import { askPage } from '../../api/client'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'

/** automations: flows, drawn and edited. */
export const automations: Feature = {
  name: 'automations',
  pages: [
    { path: '/build/automations', title: 'Automations', crumbs: [{ label: 'Build' }], load: () => import('./list'), needs: ['manage_endpoints'] },
    { path: '/build/automations/$name', title: 'Automation', crumbs: [{ label: 'Build' }, { label: 'Automations', to: paths.automations() }], load: () => import('./page'), needs: ['manage_endpoints'] },
  ],
  rail: [{ group: 'build', order: 30, label: 'Automations', icon: IconBinaryTree2, to: paths.automations(), needs: ['manage_endpoints'] }],
  palette: [{
    id: 'automations', title: 'Automations', order: 35, needs: ['manage_endpoints'],
    find: async (text, { signal }) => {
      const { rows } = await askPage('GET config/{kind}', { params: { kind: 'automation' }, query: { search: text, limit: 6 }, signal })
      return rows.map((a) => ({ id: a.name, label: a.name, note: 'Automation', icon: IconBinaryTree2, to: paths.automations(a.name) }))
    },
  }],
}
