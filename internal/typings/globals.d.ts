// What a logic component of Gatehouse finds besides the language itself.

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Who calls: the second argument of a handler. */
interface Context {
  /** Whom the component runs as. */
  readonly user: { readonly id: string; readonly email: string };
  readonly tenant: string;
  /** Finds the request in the audit log. */
  readonly requestId: string;
  /** Of a webhook; null otherwise. */
  readonly event: { readonly id: string; readonly kind: string } | null;
}

/** The argument of a webhook's verifier. */
interface Delivery {
  readonly rawBody: string;
  readonly rawBytes: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  readonly config: { readonly slug: string; readonly webhook_secret: string; readonly webhook_secrets: readonly string[] };
  readonly method: string;
  readonly query: Readonly<Record<string, string | string[]>>;
  readonly url: string;
}

/** The errors of records.*. */
interface Refusal extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: any;
}

/** A condition on a field: a value, or operators like {gte: 100, lt: 200}, which must all hold. */
type Condition<T> = [T] extends [readonly (infer U)[]] ? { readonly contains?: U; readonly is_null?: boolean } : T | Operators<T>;
type Operators<T> = { readonly eq?: T; readonly ne?: T; readonly in?: readonly T[]; readonly nin?: readonly T[]; readonly is_null?: boolean } & (
  string extends T ? Ordered<T> & { readonly prefix?: string; readonly contains?: string } : [T] extends [number] ? Ordered<T> : {});
type Ordered<T> = { readonly lt?: T; readonly lte?: T; readonly gt?: T; readonly gte?: T };
type Conditions<R> = { readonly [F in keyof R]?: Condition<NonNullable<R[F]>> };
/** All conditions must hold, and those of one of the groups of or. */
type Where<R> = Conditions<R> & { readonly or?: readonly Conditions<R>[] };
type Sorted<F extends string> = F | `-${F}`;
type EntityName = keyof Entities;
/** The entity types whose records a component makes, deletes and shares: all but user. */
type OwnedName = Exclude<EntityName, "user">;
type Entity<E extends EntityName> = Entities[E]["record"];
/** The fields of a new record, and those of a change. */
type Fields<E extends EntityName> = Entities[E]["fields"];
type Changes<E extends EntityName> = Partial<Fields<E>>;
/** Whom a record is shared with: a user, by id or e-mail address, or a role by its name. */
type With = { readonly user: string; readonly role?: null } | { readonly role: string; readonly user?: null };
/** Whom a share is with: the id of a user or the name of a role. The other is null. */
type Principal = { user: string; role: null } | { user: null; role: string };

/** A record that the caller may change and not read has its id alone. */
declare const records: {
  /** The record, or null where it is absent or hidden. */
  get<E extends EntityName>(entity: E, id: string): Entity<E> | null;
  /** The records with these values, at most 50 without a limit, up to 200. With fields they have these and their id. */
  list<E extends EntityName, F extends keyof Entity<E> & string = keyof Entity<E> & string>(entity: E, options?: {
    where?: Where<Entity<E>> | null; sort?: readonly Sorted<Entities[E]["sorts"]>[] | null; fields?: readonly F[] | null; search?: string | null;
    limit?: number | null; cursor?: string | null;
  }): { records: Pick<Entity<E>, F | ("id" & keyof Entity<E>)>[]; nextCursor: string | null };
  /** Makes a record. */
  create<E extends OwnedName>(entity: E, fields: Fields<E>): Entity<E>;
  /** Changes these fields. */
  update<E extends EntityName>(entity: E, id: string, fields: Changes<E>): Entity<E>;
  /** Deletes a record. */
  delete(entity: OwnedName, id: string): { id: string; deleted: true };
  /** Makes up to 200 records, all or none. */
  createMany<E extends OwnedName>(entity: E, list: readonly Fields<E>[]): Entity<E>[];
  /** Changes up to 200 records, all or none. */
  updateMany<E extends OwnedName>(entity: E, list: readonly { readonly id: string; readonly fields: Changes<E> }[]): Entity<E>[];
  /** Changes the record with this value of a unique field, or makes one. */
  upsert<E extends OwnedName>(entity: E, by: Entities[E]["unique"], fields: Fields<E>): Entity<E>;
  /** Shares a record with a user or a role. */
  share(entity: OwnedName, id: string, to: With & { readonly access: "read" | "edit" }): Principal & { access: "read" | "edit"; created_at: string };
  /** Takes a share back. */
  unshare(entity: OwnedName, id: string, from: With): Principal & { deleted: true };
};

/** What the manifest gives the component as config. */
declare const config: Readonly<Record<string, any>>;

/** Ends the run with an error: status 400 to 599. */
declare function fail(message: string, options?: { status?: number; code?: string; details?: unknown } | null): never;
/** Returned, it is the whole answer to the call. */
declare function respond(answer?: { status?: number | null; headers?: Readonly<Record<string, string>> | null; body?: string | object | null }): object;

type Bytes = string | ArrayBuffer | ArrayBufferView;
type Encoding = "hex" | "base64" | "base64url";
/** The digest in hex, or as the second argument says. */
declare function sha256(data: Bytes, encoding?: Encoding): string;
/** HMAC-SHA256 in hex, or as the third argument says. */
declare function hmacSha256(key: Bytes, data: Bytes, encoding?: Encoding): string;
/** HMAC-SHA1, for providers that have nothing better. */
declare function hmacSha1(key: Bytes, data: Bytes, encoding?: Encoding): string;
/** Whether the signature is right. Texts are hex or base64. */
declare function ed25519Verify(publicKey: Bytes, data: Bytes, signature: Bytes): boolean;
/** Whether the signature of the SHA-256 is right. Texts are base64. */
declare function ecdsaP256Verify(publicKey: Bytes, data: Bytes, signature: Bytes): boolean;
/** Compares in constant time. */
declare function safeCompare(a: unknown, b: unknown): boolean;
/** Whether a time is at most so many seconds away, 300 by default. */
declare function checkTimestampFresh(unixSeconds: number | string, tolerance?: number): boolean;
declare function structuredClone<T>(value: T): T;
declare function atob(text: string): string;
declare function btoa(text: string): string;
declare const crypto: {
  getRandomValues<T extends Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | BigUint64Array>(view: T): T;
  randomUUID(): string;
  sha256: typeof sha256;
  hmacSha256: typeof hmacSha256;
  hmacSha1: typeof hmacSha1;
  ed25519Verify: typeof ed25519Verify;
  ecdsaP256Verify: typeof ecdsaP256Verify;
  safeCompare: typeof safeCompare;
  checkTimestampFresh: typeof checkTimestampFresh;
};
/** What is printed is kept with the run. */
declare const console: Record<"debug" | "log" | "info" | "warn" | "error", (...values: unknown[]) => void>;

declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(input?: ArrayBuffer | ArrayBufferView): string;
}
declare class URLSearchParams {
  constructor(init?: string | URLSearchParams | Record<string, string> | Iterable<readonly [string, string]>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, params: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  hash: string;
  readonly searchParams: URLSearchParams;
  toString(): string;
  toJSON(): string;
}
