import { useQuery } from '@tanstack/react-query'
import { ask } from '../../api/client'

/** The settings of the tenant that these pages edit, as the manifest names them. */
export interface TenantValue {
  tenant: string
  public_api: { enabled: boolean; log_standard_requests: boolean }
  unauthenticated_per_ip_per_minute: number
  dedup_retention_days: number
}

export const tenantKey = ['config', 'tenant', '-'] as const

/** useTenant loads the tenant's settings with their version. */
export function useTenant(enabled = true) {
  return useQuery({
    queryKey: tenantKey, enabled,
    queryFn: async ({ signal }) => {
      const found = await ask('GET config/{kind}/{name}', { params: { kind: 'tenant', name: '-' }, signal })
      return { version: found.version, value: found.value as TenantValue }
    },
  })
}
