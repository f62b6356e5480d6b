// Written by: go test ./internal/server -run TestGoldenAdminTypes -update
// Do not edit. The Go types of the routes (httpapi.Route: Takes, Gives) are the source.

/** Nothing: the route takes none. */
export type None = undefined;

export interface Done {
  success: boolean;
}

export interface Person {
  id: string;
  email: string;
  name: string;
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

/** Each route of the admin API, by method and path below /admin/v1/. */
export interface AdminRoutes {
  "DELETE session": { params: None; query: None; body: None; data: Done; meta: Record<string, never> };
  "GET session": { params: None; query: None; body: None; data: Session; meta: Record<string, never> };
  "POST session": { params: None; query: None; body: SignIn; data: Session; meta: Record<string, never> };
}

/** The routes as values: where they are, and the system permissions of which the viewer needs one. */
export const adminRoutes = {
  "DELETE session": { method: "DELETE", path: "/admin/v1/session", needs: ["any staff, before the second factor"] },
  "GET session": { method: "GET", path: "/admin/v1/session", needs: ["any staff, before the second factor"] },
  "POST session": { method: "POST", path: "/admin/v1/session", needs: [] },
} as const satisfies Record<keyof AdminRoutes, { method: string; path: string; needs: readonly string[] }>;
