import { IconBook2 } from '@tabler/icons-react'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'

/** reference: the public API of this tenant, as a chosen user or key may use it. */
export const reference: Feature = {
  name: 'reference',
  pages: [{ path: '/api-reference', title: 'API reference', load: () => import('./reference-page') }],
  rail: [{ group: 'build', order: 90, label: 'API reference', icon: IconBook2, to: paths.apiReference() }],
}
