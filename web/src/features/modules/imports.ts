import type { ComponentValue, ModuleValue, Stored } from '../../app/build/objects'
import { paths } from '../../app/paths'

/** importersOf finds for each module the components and modules whose source imports it. */
export function importersOf(components: readonly Stored<ComponentValue>[], modules: readonly Stored<ModuleValue>[]): Map<string, { label: string; to: string }[]> {
  const all = new Map<string, { label: string; to: string }[]>()
  const add = (source: string, label: string, to: string) => {
    for (const name of importsOf(source)) all.set(name, [...(all.get(name) ?? []), { label, to }])
  }
  for (const c of components) add(c.value.source, `component ${c.name}`, paths.components(c.name))
  for (const m of modules) add(m.value.source, `module ${m.name}`, paths.modules(m.name))
  return all
}

/** importsOf names what a source imports; what stands in a comment counts, too. The server decides what is imported: this is to show. */
export function importsOf(source: string): Set<string> {
  return new Set([...source.matchAll(/(?:\bfrom|\bimport)\s*(["'])([a-z][a-z0-9_]{0,62})\1/g)].map((m) => m[2] ?? ''))
}
