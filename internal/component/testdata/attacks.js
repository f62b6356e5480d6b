// The corpus of attacks at run time: handlers' bodies that try to run for ever,
// to use up memory or to crash what runs them. Each must end by its deadline,
// within the memory limit, with or without an error, and leave the next run
// clean. A body stands below the line "//// name". The tests of
// internal/component run it inside their process, those of internal/prove as
// endpoints of the built program.

// -- loops
//// while true
while (true) {}
//// for empty
for (;;) ;
//// do while
let i = 0; do { i++ } while (i >= 0)
//// labelled continue
a: for (;;) { for (;;) continue a }
//// catch and go on
for (;;) { try { for (;;) ; } catch { } }
//// finally and go on
function f() { try { for (;;) ; } finally { f() } } f()
//// return in finally
for (;;) { (() => { try { for (;;) ; } finally { return 1 } })() }
//// generator
function* g() { for (;;) yield 1 } for (const x of g()) ;
//// generator spread
function* g() { for (;;) yield 1 } [...g()]
//// yield star itself
function* g() { yield* g() } for (const x of g()) ;
//// generator return
function* g() { try { for (;;) yield 1 } finally { for (;;) ; } } for (const x of g()) break
//// iterator
const o = { [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }) }) }; const [...a] = o
//// iterator set
const o = { [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }) }) }; new Set(o)
//// iterator from
const o = { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }; Array.from(o, () => 1).length
//// switch
for (let s = 0; ;) switch (s) { case 0: s = 1; break; case 1: s = 0 }
//// with clock
const end = Date.now() + 1e12; while (Date.now() < end) ;

// -- loops in native functions
//// indexOf array-like
[].indexOf.call({ length: 2 ** 53 - 1 }, 1)
//// lastIndexOf
[].lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)
//// includes
[].includes.call({ length: 2 ** 53 - 1 }, 1)
//// reverse array-like
[].reverse.call({ length: 2 ** 53 - 1 })
//// fill array-like
[].fill.call({ length: 2 ** 53 - 1 }, 1)
//// fill getter length
[].fill.call({ get length() { return 2 ** 32 } , set 0(v) {} }, 7)
//// copyWithin
[].copyWithin.call({ length: 2 ** 53 - 1 }, 1, 0)
//// join huge
new Array(2 ** 32 - 1).join()
//// join nested
let a = [1]; for (let i = 0; i < 60; i++) a = [a, a]; a.join()
//// from length
Array.from({ length: 2 ** 32 - 1 })
//// array fill
new Array(1e8).fill(7)
//// map sparse
new Array(2 ** 32 - 1).map(x => x)
//// forEach sparse
new Array(2 ** 32 - 1).forEach(x => x)
//// every array-like
[].every.call({ length: 2 ** 53 - 1 }, () => true)
//// splice array-like
[].splice.call({ length: 2 ** 53 - 2 }, 0, 1)
//// unshift array-like
[].unshift.call({ length: 2 ** 53 - 2 }, 1)
//// concat spreadable
[].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true })
//// flat deep
let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity)
//// flat itself
const a = []; a.push(a); a.flat(Infinity)
//// string indexOf
const s = 'a'.repeat(1e6); for (;;) s.indexOf('a'.repeat(5e5) + 'b')
//// replaceAll
let s = 'ab'.repeat(1e5); for (;;) s.replaceAll('b', 'c')
//// split huge
for (;;) 'x,'.repeat(1e6).split(',')
//// normalize
const s = 'ä'.repeat(1e6); for (;;) s.normalize('NFD')
//// localeCompare
const s = 'ä'.repeat(5e5); for (;;) s.localeCompare(s + 'x')
//// toUpperCase
const s = 'ß'.repeat(1e6); for (;;) s.toUpperCase()
//// typed fill
const a = new Uint8Array(16e6); for (;;) a.fill(1)
//// typed copyWithin
const a = new Uint8Array(16e6); for (;;) a.copyWithin(1, 0)
//// typed set
const a = new Uint8Array(8e6), b = new Uint8Array(8e6); for (;;) a.set(b)
//// typed sort
new Float64Array(2e6).map(Math.random).sort((a, b) => a - b)
//// typed indexOf
const a = new Uint8Array(16e6); for (;;) a.indexOf(1)
//// typed reverse
const a = new Uint8Array(16e6); for (;;) a.reverse()
//// sort comparator
[3, 2, 1].sort(() => { for (;;) ; })
//// sort inconsistent
Array.from({ length: 1e6 }, (_, i) => i).sort(() => Math.random() - 0.5)
//// sort grows
const a = [3, 2, 1]; a.sort(() => { a.push(1); return a.sort() })
//// toString in compare
const o = { toString() { for (;;) ; } }; [o, o].sort()
//// Object.keys
const o = {}; for (let i = 0; ; i++) { o['k' + i] = i; Object.keys(o) }
//// Math.max spread
Math.max(...new Array(1e7))
//// apply
String.fromCharCode.apply(null, { length: 2 ** 30 })
//// date parse
const s = '1'.repeat(1e6); for (;;) Date.parse(s)
//// parseInt
const s = '9'.repeat(1e6); for (;;) parseFloat(s) + parseInt(s, 7)
//// toString radix
for (;;) (Math.random() * 1e300).toString(3)
//// decodeURI
const s = '%41'.repeat(1e6); for (;;) decodeURIComponent(s)
//// escape
const s = '€'.repeat(1e6); for (;;) encodeURIComponent(s)
//// atob
const s = 'QUFB'.repeat(1e6); for (;;) atob(s)
//// map delete in loop
const m = new Map([[1, 1]]); for (const [k] of m) { m.delete(k); m.set(k, 1) }
//// set grows while read
const s = new Set([0]); for (const x of s) s.add(x + 1)
//// map forEach grows
const m = new Map([[0, 0]]); m.forEach((v, k) => m.set(k + 1, v))
//// weakmap
for (const m = new WeakMap(), keep = []; ;) { const k = {}; keep.push(k); m.set(k, keep) }
//// quadratic shift
const a = new Array(1e6).fill(0); for (;;) { a.shift(); a.push(0); a.unshift(1) }

// -- strings and arrays that grow
//// double string
let s = 'x'; for (;;) s += s
//// string by one
let s = ''; for (;;) s += 'x' + s.length
//// repeat
'x'.repeat(2 ** 29)
//// repeat loop
const a = []; for (;;) a.push('x'.repeat(2 ** 20))
//// padStart
for (let a = []; ;) a.push('x'.padStart(2 ** 24))
//// rope
let s = 'ab'; for (let i = 0; i < 1e7; i++) s = s + 'c' + s.charAt(0); return s.length
//// rope flatten
let s = 'a'; for (let i = 0; i < 29; i++) s = s + s; for (;;) s.charCodeAt(5)
//// array push
const a = []; for (;;) a.push(a.length)
//// array nest
let a = []; for (;;) a = [a, a]
//// array length
const a = []; a.length = 2 ** 32 - 1; a[2 ** 32 - 2] = 1; a.sort(); a.join()
//// array double
let a = [1]; for (;;) a = a.concat(a)
//// spread double
let a = [1]; for (;;) a = [...a, ...a]
//// small objects
const a = []; for (;;) a.push({ a: 1, b: { c: 2 } })
//// cyclic garbage
for (;;) { const a = {}, b = { a }; a.b = b }
//// linked list
let l = null; for (;;) l = { l }
//// closures
const a = []; for (;;) a.push(() => a)
//// properties
const o = {}; for (let i = 0; ; i++) o['key' + i] = i
//// symbols
const a = []; for (;;) a.push(Symbol('s'))
//// symbol registry
for (let i = 0; ; i++) Symbol.for('s' + i)
//// atoms
for (let i = 0; ; i++) ({})['p' + i] = 1
//// shapes
const a = []; for (let i = 0; ; i++) { const o = {}; o['x' + i] = 1; a.push(o) }
//// array buffer
new ArrayBuffer(1e12)
//// array buffer 2
new ArrayBuffer(2 ** 31 - 1)
//// array buffers
const a = []; for (;;) a.push(new ArrayBuffer(1e6))
//// resizable buffer
const b = new ArrayBuffer(1, { maxByteLength: 2 ** 30 }); for (let i = 1; ; i *= 2) b.resize(i)
//// typed huge
new Float64Array(2 ** 31)
//// typed from
Uint8Array.from({ length: 2 ** 31 })
//// memory kept
try { const a = []; for (;;) a.push(new Uint8Array(1e5)) } catch { for (;;) ; }
//// oom over again
for (;;) try { const a = []; for (;;) a.push(new Array(1000)) } catch { }
//// oom in catch
const keep = []; (function f() { try { for (;;) keep.push({}) } catch { f() } })()

// -- recursion
//// recursion
(function f() { f() })()
//// recursion catch
(function f() { try { f() } catch { f() } })()
//// recursion getter
const o = { get x() { return this.x } }; o.x
//// recursion toString
const o = { toString() { return '' + this } }; '' + o
//// recursion proxy
const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x
//// proxy chain
let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x
//// prototype chain
let o = {}; for (let i = 0; i < 1e5; i++) o = Object.create(o); for (;;) o.missing
//// bind chain
let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); f()
//// replace callback
function f() { return 'a'.replace(/a/, f) } f()
//// recursion class
class A { constructor() { new A() } } new A()
//// recursion toPrimitive
const o = { [Symbol.toPrimitive]: () => +o }; +o
//// exponential
function f(n) { return n ? f(n - 1) + f(n - 1) : 1 } f(60)
//// recursion JSON
const o = { toJSON() { return JSON.stringify(o) } }; JSON.stringify(o)
//// recursion reviver
JSON.parse('[1]', function f() { return JSON.parse('[1]', f) })

// -- JSON
//// JSON nesting
JSON.parse('['.repeat(5e6) + ']'.repeat(5e6))
//// JSON nesting objects
JSON.parse('{"a":'.repeat(1e6) + '1' + '}'.repeat(1e6))
//// JSON shared
let o = {}; for (let i = 0; i < 60; i++) o = { a: o, b: o }; JSON.stringify(o)
//// JSON indent
let o = {}; for (let i = 0; i < 1e4; i++) o = [o]; JSON.stringify(o, null, 10)
//// JSON replacer
JSON.stringify({ a: 1 }, () => ({ a: 1 }))
//// JSON getter
return { get a() { for (;;) ; } }
//// JSON returned shared
let o = {}; for (let i = 0; i < 60; i++) o = { a: o, b: o }; return o
//// JSON returned proxy
return new Proxy({}, { ownKeys() { for (;;) ; } })
//// JSON returned deep
let o = {}; for (let i = 0; i < 1e6; i++) o = [o]; return o
//// JSON toJSON
return { toJSON() { for (;;) ; } }
//// clone deep
let o = {}; for (let i = 0; i < 1e6; i++) o = [o]; structuredClone(o)
//// clone shared
for (let o = {}; ;) { o = { o }; structuredClone(o) }

// -- regular expressions
//// regex catastrophic
/^(a+)+$/.test('a'.repeat(40) + 'b')
//// regex nested
/(x+x+)+y/.exec('x'.repeat(50))
//// regex alternation
/^(a|a|aa)*$/.test('a'.repeat(50) + 'b')
//// regex lookbehind
/(?<=(a+)+)b$/.test('a'.repeat(50) + 'c')
//// regex backrefs
/^(.*)\1\1\1(.*)\2x$/.test('ab'.repeat(200))
//// regex repeat
/((((a{1,100}){1,100}){1,100}){1,100})$/.test('a'.repeat(1000) + 'b')
//// regex huge
new RegExp('(' .repeat(1e5) + ')'.repeat(1e5))
//// regex groups
new RegExp('()'.repeat(1e6))
//// regex class
new RegExp('[' + '\\u{1F600}-\\u{1F64F}'.repeat(1e5) + ']', 'u')
//// regex global
const r = /(?:)/g; for (;;) { r.lastIndex = 0; 'x'.repeat(1e5).replace(r, 'yy') }
//// regex exec loop
const r = /a*/; while (r.exec('b')) ;
//// regex unicode sets
const r = /^[\p{L}--[a-z]]+$/v; for (;;) r.test('Ä'.repeat(1e5))
//// regex split
for (;;) 'a'.repeat(1e6).split(/(?:)/u)

// -- promises
//// microtasks
const f = () => Promise.resolve().then(f); await f()
//// microtask queue
const f = () => queueMicrotask(f); f(); return 1
//// await loop
for (;;) await 1
//// promise flood
for (;;) Promise.resolve().then(() => 1)
//// async recursion
const f = async () => { await f() }; await f()
//// never settled
await new Promise(() => {})
//// thenable
return { then(ok) { for (;;) ; } }
//// thenable chain
const t = { then(ok) { ok(t) } }; return t
//// rejections
for (;;) Promise.reject(new Error('x'))
//// all huge
await Promise.all(new Array(1e7).fill(1))
//// async generator
async function* g() { for (;;) yield 1 } for await (const x of g()) ;
//// finally chain
let p = Promise.resolve(); for (;;) p = p.finally(() => p)
//// detached loop
(async () => { await 1; for (;;) ; })(); return 1

// -- BigInt
//// bigint power
7n ** (10n ** 8n)
//// bigint shift
1n << (1n << 40n)
//// bigint square
let a = 3n; for (;;) a *= a
//// bigint factorial
let a = 1n; for (let i = 1n; ; i++) a *= i
//// bigint toString
(1n << 4000000n).toString()
//// bigint parse
BigInt('9'.repeat(2e6))
//// bigint divide
const a = 1n << 2000000n; for (;;) a / 3n ** 1000n
//// bigint asUintN
for (;;) BigInt.asUintN(2 ** 24, -1n)

// -- proxies, getters, reflection
//// proxy ownKeys
Object.keys(new Proxy({}, { ownKeys() { for (;;) ; } }))
//// proxy many keys
Object.keys(new Proxy({}, { ownKeys: () => Array.from({ length: 1e6 }, (_, i) => 'k' + i) }))
//// proxy length
[].slice.call(new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 32 - 1 : 1, has: () => true }))
//// proxy revoked
for (;;) { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); try { proxy.x } catch { } }
//// getter loop
Object.defineProperty(Object.prototype, 'x', { get() { for (;;) ; } }); ({}).x
//// species
class A extends Array { static get [Symbol.species]() { for (;;) ; } } new A(3).map(x => x)
//// patched prelude
JSON.stringify = JSON.parse = () => { for (;;) ; }; Promise.prototype.then = null; Array.prototype[Symbol.iterator] = null; Object.prototype.toJSON = function () { for (;;) ; }; return {}
//// patched stack
Error.prepareStackTrace = () => { for (;;) ; }; null.x
//// patched stack 2
Error.prepareStackTrace = (e, s) => s; Error.stackTraceLimit = 1e9; (function f(n) { n ? f(n - 1) : null.x })(1000)
//// thrown getter
throw { get message() { for (;;) ; } }
//// thrown proxy
throw new Proxy({}, { get() { for (;;) ; } })
//// thrown huge
throw new Error('x'.repeat(1e7))
//// finalization
const r = new FinalizationRegistry(() => { for (;;) ; }); for (;;) r.register({}, 1)
//// weakref
const a = []; for (;;) a.push(new WeakRef({}))

// -- eval and the compiler
//// eval loop
eval('for (;;) ;')
//// eval recursion
const f = () => eval('f()'); f()
//// function bomb
for (;;) new Function('a', 'return a +' + Math.random())
//// eval nesting
eval('('.repeat(1e6))
//// eval blocks
eval('{'.repeat(1e6))
//// eval unary
eval('-'.repeat(2e6) + '1')
//// eval long
eval('1' + '+1'.repeat(3e6))
//// eval functions
eval('()=>'.repeat(5e5) + '1')
//// eval template
eval('`${'.repeat(1e5))
//// eval many vars
eval('var ' + Array.from({ length: 1e6 }, (_, i) => 'v' + i).join())
//// eval switch
eval('switch(1){' + 'case 1:'.repeat(1e6) + '}')
//// eval array
eval('[' + '1,'.repeat(3e6) + ']')

// -- what is ours
//// console flood
for (;;) console.log('x'.repeat(1e4))
//// console object
let o = {}; for (let i = 0; i < 60; i++) o = { a: o, b: o }; console.log(o)
//// hmac flood
const d = new Uint8Array(8e6); for (;;) crypto.hmacSha256('k', d)
//// hmac string
const d = 'é'.repeat(4e6); for (;;) crypto.hmacSha256('k', d)
//// random flood
const a = new Uint8Array(65536); for (;;) crypto.getRandomValues(a)
//// uuid flood
const a = []; for (;;) a.push(crypto.randomUUID())
//// encode flood
const s = 'é'.repeat(1e6); for (;;) new TextEncoder().encode(s)
//// decode flood
const b = new Uint8Array(8e6).fill(255); for (;;) new TextDecoder().decode(b)
//// compare flood
const s = 'x'.repeat(4e6); for (;;) safeCompare(s, s)
//// records flood
for (;;) try { records.get('a', 'b') } catch { }
//// records huge
records.create('a', { x: 'x'.repeat(2e7) })
//// records sleep
records.get('sleep', '1'); return 1
//// host reachable
const f = Object.getOwnPropertyNames(globalThis).filter(k => /host|gatehouse|qjs/.test(k)); if (f.length) for (;;) ; return f
//// detached buffer
const a = new Uint8Array(65536); a.buffer.transfer(0); crypto.getRandomValues(a); new TextDecoder().decode(a); crypto.hmacSha256('k', a)
//// shrunk buffer
const b = new ArrayBuffer(100, { maxByteLength: 100 }); const a = new Uint8Array(b, 50); b.resize(10); crypto.getRandomValues(a); return crypto.hmacSha256('k', a)
//// shared buffer
const a = new Uint8Array(new SharedArrayBuffer(64)); Atomics.wait(new Int32Array(a.buffer), 0, 0); return 1
//// atomics
const a = new Int32Array(4); for (;;) Atomics.add(a, 0, 1)
