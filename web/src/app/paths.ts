/**
 * The addresses of the console. Features link to each other through these and never import each other.
 * The strings are paths under /admin; a value is encoded here, nowhere else.
 */
const enc = encodeURIComponent

export const paths = {
  overview: () => '/',
  entity: (entity: string) => `/data/${enc(entity)}`,
  /** A record opens in a drawer over its list; tab: fields, who, requests, changes, use. */
  record: (entity: string, id: string, tab?: string) => `/data/${enc(entity)}?row=${enc(id)}${tab ? `&tab=${enc(tab)}` : ''}`,
  entities: (entity?: string) => '/build/entities' + (entity ? `/${enc(entity)}` : ''),
  components: (name?: string) => '/build/components' + (name ? `/${enc(name)}` : ''),
  modules: (name?: string) => '/build/modules' + (name ? `/${enc(name)}` : ''),
  automations: (name?: string) => '/build/automations' + (name ? `/${enc(name)}` : ''),
  events: (id?: string) => '/build/events' + (id ? `?row=${enc(id)}` : ''),
  eventsOf: (slug: string) => `/build/events?endpoint=${enc(slug)}`,
  runs: (id?: string) => '/build/runs' + (id ? `?row=${enc(id)}` : ''),
  verifier: (endpoint?: string) => '/build/verifier' + (endpoint ? `?endpoint=${enc(endpoint)}` : ''),
  apiReference: () => '/api-reference',
  users: (id?: string) => '/users' + (id ? `?row=${enc(id)}` : ''),
  apiConfig: () => '/settings/api-config',
  apiKeys: (id?: string) => '/settings/api-keys' + (id ? `?row=${enc(id)}` : ''),
  endpoints: (slug?: string) => '/settings/endpoints' + (slug ? `/${enc(slug)}` : ''),
  audit: (id?: string) => '/settings/audit' + (id ? `?row=${enc(id)}` : ''),
  /** The audit log with filters, e.g. {user: id} or {key: id} or {endpoint: '/data/contact'}. */
  auditWhere: (filters: Record<string, string>) => `/settings/audit?${new URLSearchParams(filters).toString()}`,
  externalUsers: (id?: string) => '/settings/external-users' + (id ? `?row=${enc(id)}` : ''),
  roles: (name?: string) => '/settings/roles' + (name ? `?row=${enc(name)}` : ''),
  permissionSets: (name?: string) => '/settings/permission-sets' + (name ? `/${enc(name)}` : ''),
  sharingRules: (name?: string) => '/settings/sharing-rules' + (name ? `?row=${enc(name)}` : ''),
  sessions: () => '/settings/sessions',
  templates: (name?: string) => '/settings/templates' + (name ? `/${enc(name)}` : ''),
  history: (id?: string) => '/settings/history' + (id ? `?row=${enc(id)}` : ''),
  configuration: () => '/settings/configuration',
  plan: () => '/settings/configuration/apply',
  account: () => '/account',
  signIn: (next?: string) => '/sign-in' + (next ? `?next=${enc(next)}` : ''),
}
