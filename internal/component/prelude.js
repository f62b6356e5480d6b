// The globals of a component besides those of the language, and the functions
// that Go calls. Runs once, before any user code, when the base image is made;
// user code sees only what is put on globalThis here.
//
// Rules: everything used after user code has run is captured in a constant
// here, so that a component that patches JSON or Array.prototype hurts only
// itself and only within one run. host(op, …) is the only way to Go; it is
// kept in this closure. Go checks everything again: nothing here is trusted.
(function (host) {
  'use strict';

  const G = globalThis;
  const { parse, stringify } = JSON;
  const { apply, ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf } = Reflect;
  const { TypeError, RangeError, Error, String, Object, Array, Number, Uint8Array, ArrayBuffer, Map, Set, Date, RegExp, Symbol } = G;
  const uncurry = (f) => (self, ...args) => apply(f, self, args);
  const getter = (proto, name) => uncurry(getOwnPropertyDescriptor(proto, name).get);
  const floor = Math.floor, abs = Math.abs, now = Date.now, isInteger = Number.isInteger, isFinite = Number.isFinite;
  const isArray = Array.isArray, isView = ArrayBuffer.isView;
  const slice = uncurry(String.prototype.slice);
  const codeAt = uncurry(String.prototype.charCodeAt);
  const toString = uncurry(Object.prototype.toString);

  // The operations behind host(); the numbers are repeated in hostcalls.go.
  const CALL = 1, LOG = 2, HMAC = 3, EQUAL = 4, RANDOM = 5, ENCODE = 6, DECODE = 7, FAILED = 8,
    ED25519 = 9, ECDSA = 10, RESPOND = 11, SHA256 = 12, URLS = 13, FORM = 14;

  // hidden defines a global as browsers do: not enumerable, replaceable.
  const hidden = (target, name, value) => defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });

  // ---- bytes -------------------------------------------------------------
  const TypedArray = getPrototypeOf(Uint8Array);
  const viewBuffer = getter(TypedArray.prototype, 'buffer');
  const viewOffset = getter(TypedArray.prototype, 'byteOffset');
  const viewLength = getter(TypedArray.prototype, 'byteLength');
  const dataBuffer = getter(DataView.prototype, 'buffer');
  const dataOffset = getter(DataView.prototype, 'byteOffset');
  const dataLength = getter(DataView.prototype, 'byteLength');
  const viewKind = getter(TypedArray.prototype, Symbol.toStringTag);
  const bufferLength = getter(ArrayBuffer.prototype, 'byteLength');

  // bytesOf returns a Uint8Array over the current bytes of v, or null if v is not
  // bytes. It is always a new one, of a fixed length: the engine's C functions
  // read the length that a view had when it was made, and a resizable buffer may
  // have another length now.
  function bytesOf(v) {
    if (typeof v !== 'object' || v === null) return null;
    if (isView(v)) {
      if (viewKind(v) !== undefined) return new Uint8Array(viewBuffer(v), viewOffset(v), viewLength(v));
      return new Uint8Array(dataBuffer(v), dataOffset(v), dataLength(v));
    }
    let n;
    try { n = bufferLength(v); } catch { return null; }
    return new Uint8Array(v, 0, n);
  }

  // text or bytes, for the helpers: anything else is an error.
  function data(v, what) {
    if (typeof v === 'string') return v;
    const b = bytesOf(v);
    if (b === null) throw new TypeError(what + ' must be a string or bytes');
    return b;
  }

  // ---- crypto ------------------------------------------------------------
  // SHA1 is added to the number of the encoding.
  const SHA1 = 4;
  function hmac(name, hash, key, message, encoding) {
    const k = data(key, name + ': the key');
    if ((typeof k === 'string' ? k.length : viewLength(k)) === 0) throw new TypeError(name + ': the key is empty');
    const m = data(message, name + ': the data');
    return host(HMAC, k, m, hash + encodingOf(name, encoding));
  }
  function encodingOf(name, encoding) {
    const e = encoding === 'hex' ? 0 : encoding === 'base64' ? 1 : encoding === 'base64url' ? 2 : -1;
    if (e < 0) throw new TypeError(name + ': encoding must be "hex", "base64" or "base64url"');
    return e;
  }
  function sha256(message, encoding = 'hex') {
    return host(SHA256, data(message, 'sha256: the data'), encodingOf('sha256', encoding));
  }
  function hmacSha256(key, message, encoding = 'hex') { return hmac('hmacSha256', 0, key, message, encoding); }

  // hmacSha1 is for providers that sign with nothing better, such as Twilio.
  function hmacSha1(key, message, encoding = 'hex') { return hmac('hmacSha1', SHA1, key, message, encoding); }

  // ed25519Verify and ecdsaP256Verify report whether a signature of data was made
  // with the private key of publicKey. A key of the wrong form is an error, a
  // signature of the wrong form is not right.
  function verifies(operation, name, publicKey, message, signature) {
    const k = data(publicKey, name + ': the public key');
    const m = data(message, name + ': the data');
    const s = typeof signature === 'string' ? signature : bytesOf(signature);
    if (s === null) return false;
    const right = host(operation, k, m, s);
    if (typeof right === 'string') throw new TypeError(right); // what is wrong with the key
    return right;
  }
  function ed25519Verify(publicKey, message, signature) { return verifies(ED25519, 'ed25519Verify', publicKey, message, signature); }
  function ecdsaP256Verify(publicKey, message, signature) { return verifies(ECDSA, 'ecdsaP256Verify', publicKey, message, signature); }

  // safeCompare takes the same time wherever its arguments differ. A value that is
  // neither string nor bytes is not equal to anything, itself included.
  function safeCompare(a, b) {
    const x = typeof a === 'string' ? a : bytesOf(a);
    const y = typeof b === 'string' ? b : bytesOf(b);
    return x !== null && y !== null && host(EQUAL, x, y);
  }

  // checkTimestampFresh takes seconds since 1970 as a number or as decimal
  // digits. Milliseconds, NaN, negative and empty values are not fresh.
  function checkTimestampFresh(unixSeconds, tolerance = 300) {
    let t = unixSeconds;
    if (typeof t === 'string') {
      if (t.length === 0 || t.length > 12) return false;
      let n = 0;
      for (let i = 0; i < t.length; i++) {
        const c = codeAt(t, i) - 48;
        if (!(c >= 0 && c <= 9)) return false;
        n = n * 10 + c;
      }
      t = n;
    }
    if (typeof t !== 'number' || !(t > 0) || t > 1e11) return false;
    if (typeof tolerance !== 'number' || !(tolerance >= 0)) return false;
    return abs(now() / 1000 - t) <= tolerance;
  }

  function getRandomValues(view) {
    const kind = typeof view === 'object' && view !== null && isView(view) ? viewKind(view) : undefined;
    if (kind === undefined || kind === 'Float32Array' || kind === 'Float64Array' || kind === 'Float16Array')
      throw new TypeError('getRandomValues: an integer typed array is needed');
    const problem = host(RANDOM, bytesOf(view));
    if (problem !== undefined) throw new TypeError(problem);
    return view;
  }

  function randomUUID() {
    const b = new Uint8Array(16);
    host(RANDOM, b);
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    let s = '';
    for (let i = 0; i < 16; i++) {
      if (i === 4 || i === 6 || i === 8 || i === 10) s += '-';
      s += HEX[b[i] >> 4] + HEX[b[i] & 15];
    }
    return s;
  }
  const HEX = '0123456789abcdef';
  const crypto = {};
  const bare = [sha256, hmacSha256, hmacSha1, ed25519Verify, ecdsaP256Verify, safeCompare, checkTimestampFresh];
  for (const f of [...bare, getRandomValues, randomUUID]) hidden(crypto, f.name, f);
  hidden(crypto, Symbol.toStringTag, 'Crypto');
  hidden(G, 'crypto', crypto);
  for (const f of bare) hidden(G, f.name, f);

  // ---- Math.random: sfc32, seeded anew for every run ---------------------

  let s0 = 1, s1 = 2, s2 = 3, s3 = 4;
  hidden(Math, 'random', function random() {
    const a = (s0 + s1 | 0) + s3 | 0;
    s3 = s3 + 1 | 0;
    s0 = s1 ^ s1 >>> 9;
    s1 = s2 + (s2 << 3) | 0;
    s2 = (s2 << 21 | s2 >>> 11) + a | 0;
    const b = (s0 + s1 | 0) + s3 | 0;
    s3 = s3 + 1 | 0;
    s0 = s1 ^ s1 >>> 9;
    s1 = s2 + (s2 << 3) | 0;
    s2 = (s2 << 21 | s2 >>> 11) + b | 0;
    return ((a >>> 5) * 67108864 + (b >>> 6)) / 9007199254740992;
  });

  // ---- text --------------------------------------------------------------
  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return host(ENCODE, String(text)); }
    encodeInto(text, target) {
      const b = host(ENCODE, String(text));
      let n = target.length < b.length ? target.length : b.length;
      while (n > 0 && n < b.length && (b[n] & 0xc0) === 0x80) n--; // write no part of a character
      let read = 0;
      for (let i = 0; i < n; i++) {
        target[i] = b[i];
        if ((b[i] & 0xc0) !== 0x80) read += b[i] >= 0xf0 ? 2 : 1;
      }
      return { read, written: n };
    }
  }

  class TextDecoder {
    #fatal; #ignoreBOM;
    constructor(label = 'utf-8', options = {}) {
      const l = apply(toLower, apply(trim, String(label), []), []);
      if (l !== 'utf-8' && l !== 'utf8') throw new RangeError('TextDecoder: only utf-8 is supported');
      this.#fatal = !!options?.fatal;
      this.#ignoreBOM = !!options?.ignoreBOM;
    }
    get encoding() { return 'utf-8'; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    decode(input, options) {
      if (options?.stream) throw new TypeError('TextDecoder: streams are not supported');
      if (input === undefined) return '';
      const b = bytesOf(input);
      if (b === null) throw new TypeError('TextDecoder: the input must be bytes');
      const text = host(DECODE, b, (this.#fatal ? 1 : 0) | (this.#ignoreBOM ? 2 : 0));
      if (text === null) throw new TypeError('TextDecoder: the bytes are not UTF-8');
      return text;
    }
  }
  const trim = String.prototype.trim, toLower = String.prototype.toLowerCase;
  hidden(G, 'TextEncoder', TextEncoder);
  hidden(G, 'TextDecoder', TextDecoder);

  // ---- URL ---------------------------------------------------------------
  // The parser and the encoding of forms are the host's; see urls.go.
  const push = uncurry(Array.prototype.push), iterate = Symbol.iterator;
  // wellFormed is how the web's interfaces take a text.
  const wellFormed = uncurry(String.prototype.toWellFormed);
  const textOf = (v) => wellFormed(String(v));
  const form = (text, write) => {
    const made = host(FORM, text, write);
    if (made === null) throw new TypeError('URLSearchParams: expected at most 1 MiB');
    return made;
  };

  class URLSearchParams {
    #list = []; // names and values in turn
    #url; // what changes with the list
    constructor(init = '') {
      if (typeof init === 'object' && init !== null || typeof init === 'function') {
        if (#list in init) for (let i = 0; i < init.#list.length; i++) push(this.#list, init.#list[i]);
        else if (init[iterate] !== undefined) {
          for (const pair of init) {
            const both = [...pair];
            if (both.length !== 2) throw new TypeError('URLSearchParams: expected pairs of a name and a value');
            push(this.#list, textOf(both[0]), textOf(both[1]));
          }
        } else for (const k of ownKeys(init)) if (typeof k === 'string') push(this.#list, textOf(k), textOf(init[k]));
      } else this.#read(textOf(init));
    }
    #read(text) { this.#list = parse(form(text[0] === '?' ? slice(text, 1) : text, false)); }
    #changed() { if (this.#url !== undefined) this.#url(this.toString()); }
    // of returns the parameters of a URL, which change it; read reads them again.
    static of(changed) {
      const p = new URLSearchParams();
      p.#url = changed;
      return p;
    }
    static read(p, text) { p.#read(text); }
    get size() { return this.#list.length / 2; }
    append(name, value) { push(this.#list, textOf(name), textOf(value)); this.#changed(); }
    delete(name, value) {
      const n = textOf(name), v = value === undefined ? undefined : textOf(value), l = this.#list, kept = [];
      for (let i = 0; i < l.length; i += 2) if (l[i] !== n || v !== undefined && l[i + 1] !== v) push(kept, l[i], l[i + 1]);
      this.#list = kept;
      this.#changed();
    }
    get(name) { return this.getAll(name)[0] ?? null; }
    getAll(name) {
      const n = textOf(name), l = this.#list, found = [];
      for (let i = 0; i < l.length; i += 2) if (l[i] === n) push(found, l[i + 1]);
      return found;
    }
    has(name, value) {
      const all = this.getAll(name);
      if (value === undefined) return all.length > 0;
      const v = textOf(value);
      for (let i = 0; i < all.length; i++) if (all[i] === v) return true;
      return false;
    }
    set(name, value) {
      const n = textOf(name), v = textOf(value), l = this.#list, kept = [];
      let found = false;
      for (let i = 0; i < l.length; i += 2) {
        if (l[i] !== n) push(kept, l[i], l[i + 1]);
        else if (!found) found = push(kept, n, v) > 0;
      }
      if (!found) push(kept, n, v);
      this.#list = kept;
      this.#changed();
    }
    sort() {
      const pairs = [...this];
      pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      this.#list = pairs.flat();
      this.#changed();
    }
    forEach(f, self) { for (const [name, value] of this) apply(f, self, [value, name, this]); }
    *entries() { for (let i = 0; i < this.#list.length; i += 2) yield [this.#list[i], this.#list[i + 1]]; }
    *keys() { for (let i = 0; i < this.#list.length; i += 2) yield this.#list[i]; }
    *values() { for (let i = 1; i < this.#list.length; i += 2) yield this.#list[i]; }
    [iterate]() { return this.entries(); }
    toString() { return form(stringify(this.#list), true); }
  }
  const paramsOf = URLSearchParams.of, readParams = URLSearchParams.read;
  delete URLSearchParams.of;
  delete URLSearchParams.read;

  // The parts of a URL, in the order of the host; the host numbers those that can be set.
  const PARTS = { href: -1, origin: -1, protocol: 0, username: 1, password: 2, host: 3, hostname: 4, port: 5, pathname: 6, search: 7, hash: 8 };
  const SEARCH = 9;
  class URL {
    #parts; #params;
    constructor(url, base) {
      const parts = urlParts(url, base);
      if (!parts) throw new TypeError('Invalid URL');
      this.#parts = parts;
    }
    static canParse(url, base) { return !!urlParts(url, base); }
    static parse(url, base) { return urlParts(url, base) ? new URL(url, base) : null; }
    static part(u, i) { return u.#parts[i]; }
    static set(u, part, value) {
      const text = textOf(value);
      const parts = part < 0 ? urlParts(text) : changed(u.#parts[0], text, part);
      if (!parts) {
        if (part < 0) throw new TypeError('Invalid URL');
        return; // a part that it cannot have is ignored
      }
      u.#parts = parts;
      if (u.#params !== undefined) readParams(u.#params, parts[SEARCH]);
    }
    get searchParams() {
      if (this.#params === undefined) {
        this.#params = paramsOf((text) => {
          this.#parts = changed(this.#parts[0], text, PARTS.search) ?? this.#parts;
        });
        readParams(this.#params, this.#parts[SEARCH]);
      }
      return this.#params;
    }
    toString() { return this.#parts[0]; }
    toJSON() { return this.#parts[0]; }
  }
  const partOf = URL.part, setPart = URL.set;
  delete URL.part;
  delete URL.set;
  const urlParts = (url, base) => parse(host(URLS, stringify([textOf(url), base === undefined ? null : textOf(base)]), -1) ?? 'null');
  // changed returns the parts of a URL of which one is set; null for what that part cannot be.
  const changed = (href, text, part) => {
    const parts = parse(host(URLS, stringify([href, text]), part) ?? 'null');
    if (parts === 0) throw new TypeError('URL: expected at most 32 KiB, of which 2 KiB are user and host, and 1,000 slashes');
    return parts;
  };
  ownKeys(PARTS).forEach((name, i) => defineProperty(URL.prototype, name, {
    get() { return partOf(this, i); }, set: name === 'origin' ? undefined : function (value) { setPart(this, PARTS[name], value); },
    enumerable: true, configurable: true,
  }));
  hidden(G, 'URL', URL);
  hidden(G, 'URLSearchParams', URLSearchParams);

  // ---- structuredClone ---------------------------------------------------
  const mapGet = uncurry(Map.prototype.get), mapSet = uncurry(Map.prototype.set);
  const mapEach = uncurry(Map.prototype.forEach), setEach = uncurry(Set.prototype.forEach);
  const setAdd = uncurry(Set.prototype.add), getTime = uncurry(Date.prototype.getTime);
  const bufferSlice = uncurry(ArrayBuffer.prototype.slice);
  const errors = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  const views = { __proto__: null };
  for (const name of ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array',
    'Float16Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array']) if (G[name]) views[name] = G[name];

  const uncloneable = (what) => {
    const e = new Error(what + ' cannot be cloned');
    hidden(e, 'name', 'DataCloneError');
    return e;
  };

  function clone(v, seen) {
    if (typeof v === 'function' || typeof v === 'symbol') throw uncloneable('a ' + typeof v);
    if (typeof v !== 'object' || v === null) return v;
    const known = mapGet(seen, v);
    if (known !== undefined) return known;
    const keep = (copy) => { mapSet(seen, v, copy); return copy; };
    const members = (copy) => {
      for (const k of ownKeys(v)) {
        if (typeof k !== 'string') continue;
        const d = getOwnPropertyDescriptor(v, k);
        if (d === undefined || !d.enumerable) continue;
        defineProperty(copy, k, { value: clone(v[k], seen), writable: true, enumerable: true, configurable: true });
      }
      return copy;
    };
    if (isArray(v)) {
      const copy = keep([]);
      copy.length = v.length;
      return members(copy);
    }
    if (isView(v)) {
      const kind = viewKind(v), buffer = clone(kind === undefined ? dataBuffer(v) : viewBuffer(v), seen);
      if (kind === undefined) return keep(new DataView(buffer, dataOffset(v), dataLength(v)));
      return keep(new views[kind](buffer, viewOffset(v), viewLength(v) / views[kind].BYTES_PER_ELEMENT));
    }
    switch (toString(v)) {
      case '[object Date]': return keep(new Date(getTime(v)));
      case '[object RegExp]': return keep(new RegExp(v.source, v.flags));
      case '[object ArrayBuffer]': return keep(bufferSlice(v, 0));
      case '[object Boolean]': case '[object Number]': case '[object String]': case '[object BigInt]':
        return keep(Object(v.valueOf()));
      case '[object Map]': {
        const copy = keep(new Map());
        mapEach(v, (value, key) => mapSet(copy, clone(key, seen), clone(value, seen)));
        return copy;
      }
      case '[object Set]': {
        const copy = keep(new Set());
        setEach(v, (value) => setAdd(copy, clone(value, seen)));
        return copy;
      }
      case '[object Error]': {
        const copy = keep(new (errors[v.name] ?? Error)(String(v.message)));
        hidden(copy, 'stack', v.stack);
        return copy;
      }
      case '[object Promise]': case '[object WeakMap]': case '[object WeakSet]': case '[object WeakRef]':
        throw uncloneable(toString(v));
    }
    return members(keep({}));
  }
  hidden(G, 'structuredClone', function structuredClone(value) { return clone(value, new Map()); });

  // ---- fail and records --------------------------------------------------
  class Failure extends Error {
    #chosen; // cannot be forged: only fail() makes one
    constructor(message, chosen) {
      super(message);
      this.#chosen = chosen;
      for (const k of ['status', 'code', 'details']) if (chosen[k] !== undefined) this[k] = chosen[k];
    }
    static chosen(e) { return typeof e === 'object' && e !== null && #chosen in e ? e.#chosen : undefined; }
  }
  hidden(Failure.prototype, 'name', 'Failure');
  hidden(Failure.prototype, 'constructor', Error);

  // isPlain reports whether v is an object as a literal makes it.
  const isPlain = (v) => {
    if (typeof v !== 'object' || v === null) return false;
    const proto = getPrototypeOf(v);
    return proto === objectPrototype || proto === null;
  };
  const objectPrototype = Object.prototype;
  const isCode = (v) => typeof v === 'function' || typeof v === 'symbol';

  // options returns given, the last argument of the function called name, when it is a
  // plain object of members that known has. It throws what wrong makes of a text for
  // another value, which names the member that is not known, and for a further argument.
  const options = (name, known, given, more, wrong) => {
    if (!isPlain(given)) throw wrong(name + ': expected an object of ' + known.text);
    for (const k of ownKeys(given)) {
      if (typeof k === 'symbol' || known.names[k] !== true)
        throw wrong(name + ': ' + slice(String(k), 0, 40) + ' is not known: expected ' + known.text);
    }
    for (let i = 0; i < more.length; i++) if (more[i] !== undefined) throw wrong(name + ': expected one object of ' + known.text);
    return given;
  };
  const known = (...names) => {
    const all = { __proto__: null };
    for (const n of names) all[n] = true;
    return { names: all, text: names.slice(0, -1).join(', ') + ' and ' + names.at(-1) };
  };
  const wrongType = (text) => new TypeError(text);

  const FAIL = known('status', 'code', 'details');
  hidden(G, 'fail', function fail(message, given, ...more) {
    const { status, code, details } = options('fail', FAIL, given ?? {}, more, wrongType);
    if (status !== undefined && !(isInteger(status) && status >= 400 && status <= 599))
      throw new RangeError('fail: status must be a whole number from 400 to 599');
    if (code !== undefined && typeof code !== 'string') throw new TypeError('fail: code must be a string');
    throw new Failure(String(message), { status, code, details });
  });

  // An Answer is what respond() makes: returned, it is the whole answer to the call.
  class Answer {
    #made; // cannot be forged, so that data of a caller never is one
    constructor(made) { this.#made = made; }
    static made(v) { return typeof v === 'object' && v !== null && #made in v ? v.#made : undefined; }
  }
  hidden(Answer.prototype, 'constructor', Object);

  // respond refuses here what JSON would leave out or change without a word; the host
  // checks the rest.
  const ANSWER = known('status', 'headers', 'body');
  hidden(G, 'respond', function respond(given, ...more) {
    const answer = options('respond', ANSWER, given ?? {}, more, wrongType);
    const { status, headers, body } = answer;
    if (status !== undefined && status !== null && !isInteger(status))
      throw new TypeError('respond: status: expected a whole number from 200 to 299');
    if (headers !== undefined && headers !== null) {
      if (!isPlain(headers)) throw new TypeError('respond: headers: expected an object of texts');
      for (const k of ownKeys(headers)) {
        if (typeof k === 'symbol' || isCode(headers[k])) throw new TypeError('respond: headers: expected an object of texts');
      }
    }
    if (isCode(body) || Answer.made(body) !== undefined) throw new TypeError('respond: body: expected a text, an object or a list');
    if (bytesOf(body) !== null) throw new TypeError('respond: the body must be a text, an object or a list, and no bytes');
    return new Answer({ __proto__: null, status, headers, body });
  });

  // A Refusal is an error that the host returned for a call, with code, status and
  // details. If it is not caught, its code and details are reported to the caller.
  class Refusal extends Error {
    #refused; // a copy that the script cannot change
    constructor(text) {
      const refused = parse(text);
      super(refused.message);
      this.#refused = { code: refused.code, details: stringify(refused.details) };
      this.code = refused.code;
      this.status = refused.status;
      this.details = refused.details;
    }
    static refused(e) { return typeof e === 'object' && e !== null && #refused in e ? e.#refused : undefined; }
  }
  hidden(Refusal.prototype, 'constructor', Error);

  // invalid returns the refusal of a call that the host is not asked.
  const invalid = (message) => new Refusal(stringify({ __proto__: null, message, code: 'VALIDATION', status: 400, details: { __proto__: null } }));

  // call calls the host. more are the arguments beyond those that the function takes.
  function call(name, args, more, replacer) {
    for (let i = 0; i < more.length; i++) if (more[i] !== undefined) throw invalid(name + ': expected at most ' + ownKeys(args).length + ' arguments');
    const reply = host(CALL, name, stringify(args, replacer));
    if (codeAt(reply, 0) === 61) return parse(slice(reply, 1)); // '='
    throw new Refusal(slice(reply, 1));
  }

  // exact is a replacer for the arguments of records.list. It refuses what JSON would leave
  // out or change: a list without the condition would have more records. An option that is
  // undefined is one that is not given.
  const exact = (args) => function (k, v) {
    if (v === undefined && this === args) return v;
    const found = v === undefined ? 'undefined'
      : isCode(v) ? 'a ' + typeof v
      : typeof v === 'number' && !isFinite(v) ? String(v)
      : typeof v === 'object' && v !== null && !isArray(v) && !isPlain(v) ? toString(v)
      : '';
    if (found !== '') throw invalid('records.list: ' + slice(String(k), 0, 40) + ': expected a value as JSON has it, found ' + found);
    return v;
  };
  const LIST = known('where', 'sort', 'search', 'fields', 'limit', 'cursor');
  function list(entity, given, ...more) {
    const { where, sort, search, fields, limit, cursor } = options('records.list', LIST, given === undefined ? {} : given, more, invalid);
    const args = { entity, where, sort, search, fields, limit, cursor };
    return call('records.list', args, [], exact(args));
  }

  // written checks that fields is not an object of which JSON would have nothing, such as a
  // Map or a Promise: it would change nothing without a word. The host checks the rest.
  const written = (name, fields) => {
    if (typeof fields === 'object' && fields !== null && !isArray(fields) && toString(fields) !== '[object Object]')
      throw invalid(name + ': expected the fields as an object, found ' + toString(fields));
    return fields;
  };
  const writtenAll = (name, list, of) => {
    if (isArray(list)) for (let i = 0; i < list.length && i <= MANY; i++) written(name + ': [' + i + ']', of(list[i]));
    return list;
  };
  const MANY = 200; // the host takes no more

  const records = {
    get: (entity, id, ...more) => call('records.get', { entity, id }, more),
    list,
    create: (entity, fields, ...more) => call('records.create', { entity, fields: written('records.create', fields) }, more),
    update: (entity, id, fields, ...more) => call('records.update', { entity, id, fields: written('records.update', fields) }, more),
    delete: (entity, id, ...more) => call('records.delete', { entity, id }, more),
    createMany: (entity, list, ...more) => call('records.createMany', { entity, list: writtenAll('records.createMany', list, (e) => e) }, more),
    updateMany: (entity, list, ...more) => call('records.updateMany', { entity, list: writtenAll('records.updateMany', list, (e) => e?.fields) }, more),
    upsert: (entity, by, fields, ...more) => call('records.upsert', { entity, by, fields: written('records.upsert', fields) }, more),
    share: (entity, id, to, ...more) => call('records.share', { entity, id, with: to }, more),
    unshare: (entity, id, from, ...more) => call('records.unshare', { entity, id, with: from }, more),
  };
  hidden(G, 'records', records);

  // ---- config and secrets ------------------------------------------------
  const freeze = Object.freeze;
  function frozen(v) {
    if (typeof v !== 'object' || v === null) return v;
    for (const k of ownKeys(v)) frozen(v[k]);
    return freeze(v);
  }
  hidden(G, 'config', frozen({}));
  hidden(G, 'secrets', frozen({}));

  // ---- console -----------------------------------------------------------
  const LINE = 8192;
  let printed = 0;
  function show(v) {
    switch (typeof v) {
      case 'string': return v;
      case 'bigint': return v + 'n';
      case 'function': return '[function ' + v.name + ']';
      case 'object': {
        if (v === null) return 'null';
        try {
          if (v instanceof Error) return String(v.stack ? v + '\n' + v.stack : v);
          return stringify(v, (_, m) => (typeof m === 'bigint' ? m + 'n' : m)) ?? String(v);
        } catch { return toString(v); }
      }
      default: return String(v);
    }
  }
  function print(level, args) {
    let line = '';
    for (let i = 0; i < args.length && line.length < LINE; i++) line += (i ? ' ' : '') + show(args[i]);
    // Where it was printed, of as many lines as are kept.
    const stack = printed++ < 200 ? new Error().stack : '';
    host(LOG, level, slice(line, 0, LINE), typeof stack === 'string' ? slice(stack, 0, LINE) : '');
  }
  const console = {
    debug(...args) { print(0, args); }, log(...args) { print(1, args); }, info(...args) { print(2, args); },
    warn(...args) { print(3, args); }, error(...args) { print(4, args); },
  };
  hidden(G, 'console', console);

  // ---- in and out --------------------------------------------------------
  let handler, outcome;

  // encode returns the JSON text of what a handler returned, or of the answer that it
  // made with respond().
  function encode(value) {
    const made = Answer.made(value);
    if (made !== undefined) host(RESPOND);
    const text = stringify(made ?? value);
    return text === undefined ? 'null' : text;
  }

  // short returns a JSON text that can be reported: not too long, and with doubles
  // as numbers. It stays a text, so that its content cannot make stringify(f) fail.
  const short = (text) => (text === undefined ? undefined : text.length > 4 * LINE ? '{"truncated":true}' : stringify(parse(text)));

  // failed reports to the host what was thrown. It must not throw itself while
  // there is memory left.
  function failed(e) {
    const f = { __proto__: null, message: '', stack: '' }; // has no toJSON
    const chosen = Failure.chosen(e);
    if (chosen !== undefined) {
      f.fail = true;
      f.status = chosen.status;
      f.code = chosen.code === undefined ? undefined : slice(chosen.code, 0, 100);
    }
    try {
      if (typeof e === 'object' && e !== null) {
        const { name, message, stack } = e;
        f.name = typeof name === 'string' ? slice(name, 0, 100) : '';
        f.message = typeof message === 'string' ? message : show(e);
        f.stack = typeof stack === 'string' ? slice(stack, 0, LINE) : '';
      } else {
        f.message = show(e);
        // Without memory for an error the engine throws null, or no value at all,
        // which converts to this text.
        f.nothing = e === null || typeof e !== 'string' && f.message === '[uninitialized]';
      }
      f.message = slice(f.message, 0, LINE);
      const refused = Refusal.refused(e);
      if (refused !== undefined) {
        f.code = refused.code;
        f.details = short(refused.details);
      }
      if (chosen !== undefined && chosen.details !== undefined) f.details = short(stringify(chosen.details));
    } catch { if (!f.message) f.message = 'an error that cannot be shown'; }
    host(FAILED, stringify(f));
    return null;
  }

  const settle = async (promise) => {
    try { outcome = encode(await promise); } catch (e) { outcome = failed(e); }
  };

  // invoke returns the JSON text, null after a failure, or undefined if the
  // outcome comes later.
  function invoke(a, b) {
    try {
      const r = handler(a, b);
      if ((typeof r === 'object' && r !== null || typeof r === 'function') && typeof r.then === 'function') {
        settle(r);
        return undefined;
      }
      return encode(r);
    } catch (e) { return failed(e); }
  }

  function seed(a, b, c, d) { s0 = a; s1 = b; s2 = c; s3 = d; }

  return [
    // 0: a component's run
    (inputs, ctx, a, b, c, d) => { seed(a, b, c, d); return invoke(inputs, ctx); },
    // 1: a verifier's run
    (rawBody, rawBytes, headers, config, request, a, b, c, d) => {
      seed(a, b, c, d);
      delete G.records;
      delete G.respond;
      const { method, query, url } = request;
      return invoke({ rawBody, rawBytes, headers, config, method, query, url });
    },
    // 2: the outcome of an asynchronous run
    () => outcome,
    // 3: stores the module's handler at compile time; false if there is none
    (ns) => { handler = ns.default; return typeof handler === 'function'; },
    // 4: reports an exception that reached Go
    failed,
    // 5: seeds the numbers of a top level
    seed,
    // 6: sets the globals of a component's own settings, before its top level runs
    (config, secrets) => {
      hidden(G, 'config', frozen(config));
      hidden(G, 'secrets', frozen(secrets));
    },
    // 7: refuses an import
    (message) => { throw new TypeError(message); },
  ];
})
