// Runs the scripts named on the command line, one after the other, in one browser. internal/consoletest starts it.
import { closeBrowser, runJob } from './stage.mjs'

let failed = 0
for (const file of process.argv.slice(2)) {
  const module = await import(`../${file}.test.mjs`)
  for (const one of [module.default].flat()) if (!(await runJob(file, one))) failed++
}
await closeBrowser()
if (failed) {
  console.log(`${failed} failed`)
  process.exit(1)
}
console.log('the end')
