import { IconPackage } from '@tabler/icons-react'
import { paths } from '../../app/paths'
import type { Feature } from '../../app/feature'

const crumbs = [{ label: 'Build' }, { label: 'Modules', to: paths.modules() }]

/** modules: JavaScript that components import by name. */
export const modules: Feature = {
  name: 'modules',
  pages: [
    { path: '/build/modules', title: 'Modules', crumbs: [{ label: 'Build' }], load: () => import('./list'), needs: ['manage_endpoints'] },
    { path: '/build/modules/$name', title: 'Module', crumbs, load: () => import('./page'), needs: ['manage_endpoints'] },
  ],
  rail: [{ group: 'build', order: 25, label: 'Modules', icon: IconPackage, to: paths.modules(), needs: ['manage_endpoints'] }],
}
