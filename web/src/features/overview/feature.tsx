import { IconLayoutDashboard } from '@tabler/icons-react'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'

/** overview: the first page, what the API did and what needs a look. */
export const overview: Feature = {
  name: 'overview',
  pages: [{ path: '/', title: 'Overview', load: () => import('./overview') }],
  rail: [{ group: 'top', order: 10, label: 'Overview', icon: IconLayoutDashboard, to: paths.overview() }],
}
