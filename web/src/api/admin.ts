// Written by: go test ./internal/server -run TestGoldenAdminTypes -update
// Do not edit. The Go types of the routes (httpapi.Route: Takes, Gives) are the source.

/** Nothing: the route takes none. */
export type None = undefined;

export interface DataRecordMay {
  update: boolean;
  delete: boolean;
}

export interface DataRecordMeta {
  version: number;
  may: DataRecordMay;
}

export interface DeletedRecord {
  id: string;
  deleted: boolean;
}

export interface Done {
  success: boolean;
}

export interface Explained {
  user: ExplainedUser;
  owner: string | null;
  verbs: ExplainedVerb[];
  ways: ExplainedWay[];
  fields: ExplainedField[];
  openings: Opening[];
}

export interface ExplainedField {
  name: string;
  read: (string | null)[];
  edit: (string | null)[];
}

export interface ExplainedReason {
  text: string;
  opens: string[];
  role: string | null;
  set: string | null;
}

export interface ExplainedUser {
  id: string;
  email: string;
  name: string;
  type: string;
  role: string | null;
  active: boolean;
  owner: boolean;
  sets: string[];
}

export interface ExplainedVerb {
  verb: string;
  allowed: boolean;
  code: string | null;
  status: number;
  sets: (string | null)[];
  reached: boolean;
}

export interface ExplainedWay {
  cause: string;
  opens: string[];
  reasons: ExplainedReason[];
  more: number;
  closed: string | null;
  near: boolean;
}

export interface ListMeta {
  count: number;
  hasMore: boolean;
  nextCursor: string | null;
}

export interface Opening {
  kind: string;
  text: string;
  set: string | null;
  role: string | null;
  ownedByRole: string | null;
  access: string | null;
  may: boolean;
  reach: Reach;
}

export interface Person {
  id: string;
  email: string;
  name: string;
}

export interface Reach {
  records: ReachCount;
  users: ReachCount;
}

export interface ReachCount {
  count: number;
  more: boolean;
}

export interface RecordShare {
  user: string | null;
  role: string | null;
  access: string;
  created_at: string;
}

export interface Seer {
  id: string;
  email: string;
  name: string;
  type: string;
  verbs: string[];
  text: string;
  more: number;
}

export interface SeersMeta {
  count: number;
  looked: number;
  hasMore: boolean;
  nextCursor: string | null;
}

export interface Session {
  id: string;
  stage: Stage;
  user: Person;
  actingAs: Person | null;
  owner: boolean;
  system: string[];
  tenant: TenantInfo;
  signedInAt: string;
  expiresAt: string;
}

export interface ShareOf {
  user?: string;
  role?: string;
}

export interface ShareWith {
  user?: string;
  role?: string;
  access: string;
}

export interface SignIn {
  email: string;
  password: string;
}

export type Stage = "full" | "code" | "enrolment";

export interface TenantInfo {
  id: string;
  displayName: string;
  baseUrl: string;
}

export interface Unshared {
  user: string | null;
  role: string | null;
  deleted: boolean;
}

/** Each route of the admin API, by method and path below /admin/v1/. */
export interface AdminRoutes {
  "GET data/{entity}": { params: { entity: string }; query: { limit?: string | number | boolean; cursor?: string | number | boolean; [key: `filter[${string}]`]: string | undefined }; body: None; data: Record<string, unknown>[]; meta: ListMeta };
  "POST data/{entity}": { params: { entity: string }; query: None; body: Record<string, unknown>; data: Record<string, unknown>; meta: Record<string, never> };
  "DELETE data/{entity}/{id}": { params: { entity: string; id: string }; query: None; body: None; data: DeletedRecord; meta: Record<string, never> };
  "GET data/{entity}/{id}": { params: { entity: string; id: string }; query: None; body: None; data: Record<string, unknown>; meta: DataRecordMeta };
  "PATCH data/{entity}/{id}": { params: { entity: string; id: string }; query: { version?: string | number | boolean }; body: Record<string, unknown>; data: Record<string, unknown>; meta: DataRecordMeta };
  "DELETE data/{entity}/{id}/shares": { params: { entity: string; id: string }; query: None; body: ShareOf; data: Unshared; meta: Record<string, never> };
  "GET data/{entity}/{id}/shares": { params: { entity: string; id: string }; query: None; body: None; data: RecordShare[]; meta: ListMeta };
  "POST data/{entity}/{id}/shares": { params: { entity: string; id: string }; query: None; body: ShareWith; data: RecordShare; meta: Record<string, never> };
  "GET data/{entity}/{id}/viewers": { params: { entity: string; id: string }; query: { type?: string | number | boolean; cursor?: string | number | boolean }; body: None; data: Seer[]; meta: SeersMeta };
  "GET openapi": { params: None; query: { as?: string | number | boolean }; body: None; data: Record<string, unknown>; meta: Record<string, never> };
  "GET reach": { params: None; query: { entity?: string | number | boolean; owned_by_role?: string | number | boolean; [key: `where[${string}]`]: string | undefined; share_with_role?: string | number | boolean }; body: None; data: Reach; meta: Record<string, never> };
  "DELETE session": { params: None; query: None; body: None; data: Done; meta: Record<string, never> };
  "GET session": { params: None; query: None; body: None; data: Session; meta: Record<string, never> };
  "POST session": { params: None; query: None; body: SignIn; data: Session; meta: Record<string, never> };
  "GET why": { params: None; query: { user?: string | number | boolean; entity?: string | number | boolean; id?: string | number | boolean; verb?: string | number | boolean; field?: string | number | boolean }; body: None; data: Explained; meta: Record<string, never> };
}

/** The routes as values: where they are, and the system permissions of which the viewer needs one. */
export const adminRoutes = {
  "GET data/{entity}": { method: "GET", path: "/admin/v1/data/{entity}", needs: ["any staff"] },
  "POST data/{entity}": { method: "POST", path: "/admin/v1/data/{entity}", needs: ["any staff"] },
  "DELETE data/{entity}/{id}": { method: "DELETE", path: "/admin/v1/data/{entity}/{id}", needs: ["any staff"] },
  "GET data/{entity}/{id}": { method: "GET", path: "/admin/v1/data/{entity}/{id}", needs: ["any staff"] },
  "PATCH data/{entity}/{id}": { method: "PATCH", path: "/admin/v1/data/{entity}/{id}", needs: ["any staff"] },
  "DELETE data/{entity}/{id}/shares": { method: "DELETE", path: "/admin/v1/data/{entity}/{id}/shares", needs: ["any staff"] },
  "GET data/{entity}/{id}/shares": { method: "GET", path: "/admin/v1/data/{entity}/{id}/shares", needs: ["any staff"] },
  "POST data/{entity}/{id}/shares": { method: "POST", path: "/admin/v1/data/{entity}/{id}/shares", needs: ["any staff"] },
  "GET data/{entity}/{id}/viewers": { method: "GET", path: "/admin/v1/data/{entity}/{id}/viewers", needs: ["manage_users", "manage_permissions"] },
  "GET openapi": { method: "GET", path: "/admin/v1/openapi", needs: ["any staff"] },
  "GET reach": { method: "GET", path: "/admin/v1/reach", needs: ["manage_permissions"] },
  "DELETE session": { method: "DELETE", path: "/admin/v1/session", needs: ["any staff, before the second factor"] },
  "GET session": { method: "GET", path: "/admin/v1/session", needs: ["any staff, before the second factor"] },
  "POST session": { method: "POST", path: "/admin/v1/session", needs: [] },
  "GET why": { method: "GET", path: "/admin/v1/why", needs: ["manage_users", "manage_permissions"] },
} as const satisfies Record<keyof AdminRoutes, { method: string; path: string; needs: readonly string[] }>;
