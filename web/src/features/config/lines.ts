/** inline writes a value on one line, as the manifest does in flow style. */
export function inline(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  if (typeof value === 'string') return /^[\w@./ -]+$/.test(value) && value.trim() === value ? value : JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (typeof value === 'object') return `{${Object.entries(value).map(([name, one]) => `${name}: ${inline(one)}`).join(', ')}}`
  return JSON.stringify(value)
}

/** block writes a value as lines: a member a line, lists of objects item by item. */
export function block(value: unknown, indent = ''): string {
  if (value === null || typeof value !== 'object') return `${indent}${inline(value)}`
  if (Array.isArray(value)) return value.map((one) => `${indent}- ${inline(one)}`).join('\n')
  return Object.entries(value).map(([name, one]) => {
    if (one !== null && typeof one === 'object' && inline(one).length > 70) return `${indent}${name}:\n${block(one, `${indent}  `)}`
    if (typeof one === 'string' && one.includes('\n')) return `${indent}${name}: |\n${one.split('\n').map((line) => `${indent}  ${line}`).join('\n')}`
    return `${indent}${name}: ${inline(one)}`
  }).join('\n')
}
