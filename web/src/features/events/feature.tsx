import { IconWebhook } from '@tabler/icons-react'
import type { Feature } from '../../app/feature'
import { paths } from '../../app/paths'

const crumbs = [{ label: 'Build' }, { label: 'Webhook events', to: paths.events() }]

/** events: deliveries of webhooks, runs, and the test bench for their verifiers. */
export const events: Feature = {
  name: 'events',
  pages: [
    { path: '/build/events', title: 'Webhook events', crumbs: [{ label: 'Build' }], load: () => import('./events'), needs: ['manage_endpoints'] },
    { path: '/build/runs', title: 'Runs', crumbs, load: () => import('./runs'), needs: ['manage_endpoints'] },
    { path: '/build/verifier', title: 'Verifier test bench', crumbs, load: () => import('./verifier'), needs: ['manage_endpoints'] },
  ],
  rail: [{ group: 'build', order: 40, label: 'Webhook events', icon: IconWebhook, to: paths.events(), needs: ['manage_endpoints'] }],
  palette: [{
    id: 'events', title: 'Webhooks', order: 60, needs: ['manage_endpoints'],
    find: (text) => [
      { id: 'runs', label: 'Runs', icon: IconWebhook, to: paths.runs() },
      { id: 'failed', label: 'Failed deliveries', icon: IconWebhook, to: `${paths.events()}?status=failed` },
      { id: 'verifier', label: 'Verifier test bench', icon: IconWebhook, to: paths.verifier() },
    ].filter((i) => text !== '' && i.label.toLowerCase().includes(text.toLowerCase())),
  }],
}
