import { expect, it } from 'vitest'
import { importersOf, importsOf } from './imports'

it('names what a source imports', () => {
  const source = 'import {total} from "pricing"\nimport * as a from \'units\';import"effects"\nimport {\n  b,\n} from "pricing"\nconst from = "nothing"; records.get("account", 1)'
  expect([...importsOf(source)]).toEqual(['pricing', 'units', 'effects'])
})

it('finds who imports a module', () => {
  const found = importersOf([{ name: 'order', version: '1', value: { source: 'import {total} from "pricing"' } }], [{ name: 'pricing', version: '1', value: { source: 'import {round} from "units"' } }])
  expect(found.get('pricing')).toEqual([{ label: 'component order', to: '/build/components/order' }])
  expect(found.get('units')).toEqual([{ label: 'module pricing', to: '/build/modules/pricing' }])
  expect(found.get('other')).toBeUndefined()
})
