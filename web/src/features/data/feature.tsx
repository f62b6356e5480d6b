import { IconTable } from '@tabler/icons-react'
import { ask } from '../../api/client'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'
import { DataRail } from './rail'

/** data: records of every entity type, under one's own permissions. */
export const data: Feature = {
  name: 'data',
  pages: [
    { path: '/data', title: 'Data', load: () => import('./first-page') },
    { path: '/data/$entity', title: 'Data', crumbs: [{ label: 'Data', to: '/data' }], load: () => import('./data-page') },
  ],
  railParts: [{ group: 'data', order: 10, Part: DataRail }],
  palette: [{
    id: 'entities', title: 'Data', prefix: '#', order: 20,
    find: async (text, { signal }) => {
      const list = await ask('GET data', { signal })
      const needle = text.toLowerCase()
      return list.filter((e) => e.name.includes(needle) || e.label.toLowerCase().includes(needle)).slice(0, 12)
        .map((e) => ({ id: e.name, label: e.name, note: 'records', icon: IconTable, to: paths.entity(e.name) }))
    },
  }],
}
