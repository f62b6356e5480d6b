package component_test

import (
	_ "embed"
	"strings"
)

// attacks are bodies of handlers that try to run for ever, to use up memory or to
// crash the engine. Each must end by its deadline, within the memory limit, with
// or without an error, and must not affect the next run. The tests of
// internal/prove run them on the built program, too.
var attacks = corpus(attacksText)

//go:embed testdata/attacks.js
var attacksText string

// corpus splits the file, in which each body follows a line "//// name".
func corpus(text string) map[string]string {
	bodies := map[string]string{}
	for _, part := range strings.Split(text, "\n//// ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		if bodies[name] != "" || strings.TrimSpace(body) == "" {
			panic("testdata/attacks.js: " + name + " is there twice or empty")
		}
		bodies[name] = body
	}
	return bodies
}

// topLevel are attacks on Compile: sources, not bodies.
var topLevel = map[string]string{
	"loop":            `for (;;) ;`,
	"await loop":      `for (;;) await 1`,
	"memory":          `const a = []; for (;;) a.push(new Uint8Array(1e5))`,
	"recursion":       `(function f() { f() })()`,
	"regex":           `/^(a+)+$/.test('a'.repeat(40) + 'b')`,
	"native":          `[].indexOf.call({ length: 2 ** 53 - 1 }, 1)`,
	"microtasks":      `const f = () => queueMicrotask(f); f()`,
	"bigint":          `7n ** (10n ** 8n)`,
	"getter export":   `export default new Proxy(() => 1, {}); for (;;) ;`,
	"import itself":   `import 'component.js'`,
	"import data":     `import x from 'data:text/javascript,1'`,
	"nesting":         repeated("(", 200_000),
	"nesting arrays":  repeated("[", 200_000),
	"nesting blocks":  repeated("{", 200_000),
	"unary":           repeated("!", 200_000) + "1",
	"arrows":          repeated("()=>", 50_000) + "1",
	"templates":       repeated("`${", 60_000),
	"one expression":  "1" + repeated("+1", 100_000),
	"regex literal":   "/" + repeated("(a", 60_000),
	"long identifier": repeated("x", 200_000),
	"comments":        repeated("/**/", 60_000),
	"zero bytes":      repeated("\x00", 1000),
	"no UTF-8":        repeated("\xff\xfe", 1000),
	"binary":          "\x7fELF\x02\x01\x01" + repeated("\x00\x90", 100),
	"html comment":    "<!-- " + repeated("-->", 1000),
}
