import type { Feature } from './feature'
import { accessFeature } from '../features/access/feature'
import { audit } from '../features/audit/feature'
import { automations } from '../features/automations/feature'
import { components } from '../features/components/feature'
import { configFeature } from '../features/config/feature'
import { data } from '../features/data/feature'
import { endpoints } from '../features/endpoints/feature'
import { events } from '../features/events/feature'
import { keys } from '../features/keys/feature'
import { modules } from '../features/modules/feature'
import { overview } from '../features/overview/feature'
import { reference } from '../features/reference/feature'
import { staff } from '../features/staff/feature'

/** All features, in the order of the rail. A feature is added here and nowhere else. */
export const features: readonly Feature[] = [
  overview,
  data,
  configFeature,
  components,
  modules,
  automations,
  events,
  accessFeature,
  keys,
  endpoints,
  audit,
  staff,
  reference,
]
