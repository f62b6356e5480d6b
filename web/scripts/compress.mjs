// Writes a .br and a .gz beside each text file of the build, so that the server compresses nothing while it serves,
// then checks the first load: what index.html asks for before anybody clicks must stay under 300 KB compressed.
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const dist = join(import.meta.dirname, '../../internal/console/dist')
const text = new Set(['.js', '.css', '.html', '.svg', '.json'])
const budget = 300 * 1000

const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((f) => f.isFile()).map((f) => join(f.parentPath, f.name))
for (const file of files) {
  if (!text.has(extname(file)) || file.includes('.vite')) continue
  const body = readFileSync(file)
  if (body.length < 512) continue
  writeFileSync(`${file}.br`, brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: body.length } }))
  writeFileSync(`${file}.gz`, gzipSync(body, { level: 9 }))
}

const manifest = JSON.parse(readFileSync(join(dist, '.vite/manifest.json'), 'utf8'))
const first = new Set(['index.html'])
/** Adds a chunk, its style sheets and the chunks it imports at once. */
const add = (key) => {
  const chunk = manifest[key]
  if (first.has(chunk.file)) return
  first.add(chunk.file)
  for (const css of chunk.css ?? []) first.add(css)
  for (const next of chunk.imports ?? []) add(next)
}
add('index.html')
// The fonts of the first screen: the two Latin files. The others load for other scripts only.
for (const file of files) {
  if (/hanken-grotesk-latin-wght-normal-.*\.woff2$|commit-mono-latin-400-normal-.*\.woff2$/.test(file)) first.add(file.slice(dist.length + 1))
}
const size = (name) => {
  try { return readFileSync(join(dist, `${name}.gz`)).length } catch { return readFileSync(join(dist, name)).length }
}
const sizes = [...first].map((name) => [name, size(name)])
const total = sizes.reduce((sum, [, n]) => sum + n, 0)
rmSync(join(dist, '.vite'), { recursive: true })
console.log(`first load: ${total} bytes in ${sizes.length} files, gzip; the budget is ${budget}`)
if (total > budget) {
  for (const [name, n] of sizes.sort((a, b) => b[1] - a[1])) console.error(`  ${String(n).padStart(8)}  ${name}`)
  console.error('the first load is over its budget: load the heavy part when it is opened')
  process.exit(1)
}
