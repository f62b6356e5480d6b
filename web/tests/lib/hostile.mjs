// Strings that a page must show as they are: markup, scripts, links, control characters, direction marks, templates, formulas, length.

/** What each payload would do if it ran; hostile.test.mjs looks for it. */
const run = 'window.__canary=(window.__canary||0)+1'

const payloads = [
  `<script>${run}</script>`, `<img src=x onerror="${run}">`, `<svg onload="${run}">`, `<body onload="${run}">`, `<iframe srcdoc="<script>parent.__canary=1</script>">`,
  `<a href="javascript:${run}">x</a>`, `javascript:${run}`, `JaVaScRiPt:${run}`, `data:text/html,<script>${run}</script>`, `vbscript:msgbox(1)`,
  `<math><mtext><style><img src=x onerror=${run}></style>`, `<details open ontoggle=${run}>`, `<style>*{display:none!important}</style>`, `<link rel=stylesheet href=//evil.example/x.css>`,
  `<base href="//evil.example/">`, `<meta http-equiv=refresh content="0;url=//evil.example">`, `<form action="//evil.example"><input name=q>`, `<template><script>${run}</script></template>`,
  `{{constructor.constructor('${run}')()}}`, `\${${run}}`, `#{${run}}`, `<%= ${run} %>`, `{{7*7}}`, `{% raw %}`, `[[\${T(java.lang.Runtime)}]]`, `@{${run}}`,
  `=HYPERLINK("//evil.example","x")`, `=cmd|' /C calc'!A0`, `+SUM(1,2)`, `-2+3`, `@SUM(A1)`, `%0d%0aSet-Cookie: a=b`,
  `'; DROP TABLE records; --`, `" OR ""="`, `\\u003cscript\\u003e`, `..\\..\\..\\etc`, `../../../../etc/passwd`, `%2e%2e%2f%00`, `$(touch /tmp/x)`, '`id`',
]
const frames = [(s) => s, (s) => `">${s}`, (s) => `'>${s}<!--`, (s) => `--></textarea></title></style></script>${s}`]

const signs = [
  ...Array.from({ length: 32 }, (_, i) => `control ${i} [${String.fromCharCode(i)}] end`), 'delete \u007f end', 'C1 \u0085 \u009b31m end', '\u001b[31mred\u001b[0m', '\u001b]0;title\u0007',
  '\u202Egpj.exe', '\u2066isolated\u2069', '\u202A\u202B\u202C\u202D', 'مرحبا بالعالم', 'שלום עולם', 'abc \u200f123 \u200e', '\u061cmark', 'a\u200bb\u200cc\u200dd\u2060e\ufeff', '\u00ad'.repeat(50),
  'Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034da\u036b\u0357\u0334\u0362\u0335\u031c\u0330\u0354lgo', 'e\u0301'.repeat(40), '\ufdfd\ufdfd\ufdfd', '\u{12031}\u{1242b}',
  '👩‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿🇺🇳', '\u{1F600}'.repeat(60), '\u{E0001}\u{E0020}tags', '\ud800', 'a\udfffb', '\ud83d', '\ufffe\uffff', '\u2028line\u2029paragraph', '田'.repeat(70), 'ﷺ'.repeat(30),
  '', ' ', '\t\t', '\n\n\n', '\r\n', '   lead and trail   ', 'null', 'undefined', 'NaN', 'true', '0', '-0', '1e999', '__proto__', 'constructor', 'toString', 'hasOwnProperty', '[object Object]', '%s%n%d', '%', '&amp;lt;', '&#x3c;b&#x3e;', '\\', '\\\\"', '"', "'", '/', '//evil.example', '?a=b&c', '#frag', '.',
]

const long = ['x'.repeat(10_000), 'wide '.repeat(2_000), '<b>'.repeat(3_333), '\u202e'.repeat(1_000), `${'VeryLongWordWithoutAnyBreak'.repeat(30)}`, `https://example.com/${'a'.repeat(2_000)}`, 'W'.repeat(300), '\n'.repeat(500), '{{'.repeat(500), '['.repeat(2_000), `${'a'.repeat(99)}`, `${'ẞ'.repeat(63)}`]

/** All of them, each once. */
export const hostile = [...new Set([...payloads.flatMap((p) => frames.map((f) => f(p))), ...signs, ...long])]

/** few gives about n of them, of each sort. */
export function few(n) { return hostile.filter((_, i) => i % Math.ceil(hostile.length / n) === 0) }
