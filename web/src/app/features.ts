import type { Feature } from './feature'
import { audit } from '../features/audit/feature'
import { configFeature } from '../features/config/feature'
import { data } from '../features/data/feature'
import { keys } from '../features/keys/feature'
import { overview } from '../features/overview/feature'
import { reference } from '../features/reference/feature'
import { staff } from '../features/staff/feature'

/** All features, in the order of the rail. A feature is added here and nowhere else. */
export const features: readonly Feature[] = [
  overview,
  staff,
  data,
  configFeature,
  keys,
  audit,
  reference,
]
