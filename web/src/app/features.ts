import type { Feature } from './feature'
import { configFeature } from '../features/config/feature'
import { data } from '../features/data/feature'
import { reference } from '../features/reference/feature'
import { staff } from '../features/staff/feature'

/** All features, in the order of the rail. A feature is added here and nowhere else. */
export const features: readonly Feature[] = [
  staff,
  data,
  configFeature,
  reference,
]
