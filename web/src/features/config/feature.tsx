import { IconApi, IconFileCode, IconHistory, IconMail, IconStack2 } from '@tabler/icons-react'
import { ask } from '../../api/client'
import type { Feature, Needs } from '../../app/feature'
import { paths } from '../../app/paths'
import { ApiStatus } from './api-status'

const entitiesNeeds: Needs = ['manage_entities']
const any: Needs = ['manage_users', 'manage_permissions', 'manage_entities', 'manage_endpoints', 'tenant_settings']
const endpoints = [{ label: 'Settings' }, { label: 'Integrations and API' }, { label: 'Endpoints' }] as const

/** config: what the tenant is made of: entities and fields, the manifest, its history, the mails' texts, the switches of the API. */
export const configFeature: Feature = {
  name: 'config',
  pages: [
    { path: '/build/entities', title: 'Entities and fields', crumbs: [{ label: 'Build' }], load: () => import('./entities'), needs: entitiesNeeds },
    { path: '/build/entities/$name', title: 'Entity', crumbs: [{ label: 'Build' }, { label: 'Entities and fields', to: paths.entities() }], load: () => import('./entity'), needs: entitiesNeeds },
    { path: '/settings/api-config', title: 'API Config', crumbs: endpoints, load: () => import('./api-config'), needs: ['manage_endpoints', 'tenant_settings'] },
    { path: '/settings/templates', title: 'E-mail templates', crumbs: [{ label: 'Settings' }], load: () => import('./templates'), needs: ['tenant_settings'] },
    { path: '/settings/templates/$name', title: 'E-mail template', crumbs: [{ label: 'Settings' }, { label: 'E-mail templates', to: paths.templates() }], load: () => import('./template'), needs: ['tenant_settings'] },
    { path: '/settings/history', title: 'Change history', crumbs: [{ label: 'Settings' }], load: () => import('./history'), needs: any },
    { path: '/settings/configuration', title: 'Configuration', crumbs: [{ label: 'Settings' }], load: () => import('./configuration'), needs: any },
    { path: '/settings/configuration/apply', title: 'Apply a manifest', crumbs: [{ label: 'Settings' }, { label: 'Configuration', to: paths.configuration() }], load: () => import('./apply'), needs: any },
  ],
  rail: [
    { group: 'build', order: 10, label: 'Entities and fields', icon: IconStack2, to: paths.entities(), needs: entitiesNeeds },
    { group: 'settings', order: 10, under: 'Integrations and API', label: 'API Config', icon: IconApi, to: paths.apiConfig(), needs: ['manage_endpoints', 'tenant_settings'] },
    { group: 'settings', order: 30, label: 'E-mail templates', icon: IconMail, to: paths.templates(), needs: ['tenant_settings'] },
    { group: 'settings', order: 40, label: 'Change history', icon: IconHistory, to: paths.history(), needs: any },
    { group: 'settings', order: 50, label: 'Configuration', icon: IconFileCode, to: paths.configuration(), needs: any },
  ],
  palette: [{
    id: 'entity-definitions', title: 'Entities and fields', prefix: '#', order: 35, needs: entitiesNeeds,
    find: async (text, { signal }) => {
      const all = await ask('GET entities', { signal })
      return all.filter((e) => `${e.name} ${e.label}`.toLowerCase().includes(text.toLowerCase())).slice(0, 5)
        .map((e) => ({ id: e.name, label: `Fields of ${e.name}`, note: `${e.fields} fields`, icon: IconStack2, to: paths.entities(e.name) }))
    },
  }],
  Status: ApiStatus,
}
