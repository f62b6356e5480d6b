import { expect, test } from 'vitest'
import { block, inline } from './lines'

test('a value on one line', () => {
  expect(inline({ name: 'email', indexed: true, options: ['a b', 'c: d'], of: null })).toBe('{name: email, indexed: true, options: [a b, "c: d"], of: none}')
})

test('an object in lines', () => {
  expect(block({ label: 'Contact', fields: [{ name: 'first_name', type: 'text', required: true }, { name: 'last_name', type: 'text' }], source: 'a\nb' }))
    .toBe('label: Contact\nfields:\n  - {name: first_name, type: text, required: true}\n  - {name: last_name, type: text}\nsource: |\n  a\n  b')
})
