// Runs the scripts that it is given the names of, one after the other, in one browser.

import {browser} from "./stage.mjs"

for (const name of process.argv.slice(2)) {
  console.log(`${name}:`)
  await import(`./${name}.test.mjs`)
  for (const context of browser.contexts()) await context.close()
}
await browser.close()
console.log("the end")
