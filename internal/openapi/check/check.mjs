// Usage: node check.mjs FILE…
// Checks OpenAPI documents with a validator, makes TypeScript of each with
// openapi-typescript, and compiles that strictly.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

let failed = false;
function fail(file, what) {
  failed = true;
  console.error(`${file}: ${what}`);
}

const sources = new Map();
for (const file of process.argv.slice(2)) {
  const text = readFileSync(file, "utf8");
  const result = await new Validator().validate(JSON.parse(text));
  if (!result.valid) fail(file, JSON.stringify(result.errors, null, 2));
  const source = astToString(await openapiTS(text));
  sources.set(`${file}.ts`, source);
  console.log(`${file}: ${Object.keys(JSON.parse(text).paths).length} paths, ${source.split("\n").length} lines of TypeScript`);
}

const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ["lib.es5.d.ts"], target: ts.ScriptTarget.ES2022 };
const host = ts.createCompilerHost(options);
const read = host.getSourceFile.bind(host);
host.getSourceFile = (path, version) => (sources.has(path) ? ts.createSourceFile(path, sources.get(path), version) : read(path, version));
for (const d of ts.getPreEmitDiagnostics(ts.createProgram([...sources.keys()], options, host))) {
  fail(d.file?.fileName ?? "", ts.flattenDiagnosticMessageText(d.messageText, "\n"));
}
process.exit(failed ? 1 : 0);
