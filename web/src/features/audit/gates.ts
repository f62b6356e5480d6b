import type { LogDetail, LogEntry } from '../../api/admin'
import type { ArchState } from '../../ui/arch'

/** credentialWords names what a request came with. */
export function credentialWords(credential: string | null): string {
  switch (credential) {
    case 'KEY': return 'API key'
    case 'JWT': return 'access token'
    case 'TOKEN': return 'webhook token'
    case 'SIGNED': return 'signature'
    case 'SESSION': return 'session'
    case null: default: return 'no credential'
  }
}

/** whoOf names the user of an entry: by name, else by address, else by id. */
export function whoOf(user: LogEntry['user']): string | undefined {
  return user ? user.name ?? user.email ?? `${user.id.slice(0, 8)}…${user.id.slice(-4)}` : undefined
}

/** gateName is what a gate is called on the track. */
export function gateName(gate: string, e: LogEntry): string {
  switch (gate) {
    case 'host': return 'Host'
    case 'switch': return e.endpoint?.startsWith('/auth') ? 'External Identity' : 'Public API'
    case 'path': return 'Path'
    case 'credential': return { KEY: 'Key', JWT: 'Token', TOKEN: 'Webhook token', SIGNED: 'Signature', SESSION: 'Session' }[e.credential ?? ''] ?? 'Credential'
    case 'address': return 'Address'
    case 'origin': return 'Origin'
    case 'rate': return 'Rate'
    case 'permission': return 'Permission'
    case 'body': return e.method === 'GET' ? 'Query' : 'Body'
    case 'fields': return 'Fields'
    case 'record': return 'Sharing'
    case 'run': return 'Run'
    case 'conflict': return 'Conflict'
    default: return 'Service'
  }
}

const verbs: Record<string, string> = { GET: 'read', POST: 'create', PATCH: 'update', DELETE: 'delete' }

/** gateWhy is the word under a gate: what it was about in this request. */
export function gateWhy(gate: string, state: ArchState, e: LogDetail): string {
  if (state === 'none') return 'not reached'
  const who = whoOf(e.user)
  const stopped = state === 'shut'
  switch (gate) {
    case 'host': return 'known'
    case 'switch': return stopped ? 'off' : 'on'
    case 'path': return stopped ? 'nothing there' : e.endpoint ?? e.path
    case 'credential': return stopped ? (e.key?.prefix ? `${e.key.prefix}…` : 'not valid') : [e.key?.name ?? (e.key ? `${e.key.prefix}…` : undefined), who].filter(Boolean).join(' → ') || credentialWords(e.credential)
    case 'address': return `${stopped ? 'not from ' : 'from '}${e.ip ?? 'nowhere'}`
    case 'origin': return e.request.headers['origin'] ?? 'none'
    case 'rate': return stopped ? 'used up' : 'within the limit'
    case 'permission': return e.endpoint?.startsWith('/data/') ? `${e.endpoint.slice(6)}: ${verbs[e.method] ?? e.method}` : stopped ? 'not given' : 'given'
    case 'body': return stopped ? Object.keys(e.fields).slice(0, 3).join(', ') || 'not readable' : 'well-formed'
    case 'fields': return stopped ? `${Object.keys(e.fields).slice(0, 3).join(', ')}: read only` : 'all open'
    case 'record': return stopped ? (e.status === 404 ? 'not visible or not there' : 'not to change') : 'visible'
    case 'run': return stopped ? e.code ?? 'failed' : 'done'
    case 'conflict': return Object.keys(e.fields).slice(0, 3).join(', ') || 'it changed meanwhile'
    default: return stopped ? e.code ?? '' : 'up'
  }
}

/** archOf is the sign of a gate's state. */
export function archOf(state: string): ArchState { return state === 'open' ? 'open' : state === 'shut' ? 'shut' : 'none' }
