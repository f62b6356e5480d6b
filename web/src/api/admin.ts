// The routes of /admin/v1 and the shapes of their bodies and answers.
// Written by hand until the Go side generates it; the names are those of docs/admin-api.md.

export type Stage = 'full' | 'code' | 'enrolment'

export interface Person { id: string; email: string; name: string }

export interface TenantInfo { id: string; displayName: string; baseUrl: string }

export interface Session {
  id: string
  stage: Stage
  user: Person
  actingAs: Person | null
  owner: boolean
  system: string[]
  tenant: TenantInfo
  signedInAt: string
  expiresAt: string
}

export interface SignIn { email: string; password: string }

export interface Done { success: boolean }

/** Routes maps "METHOD path" to what the route takes (JSON body) and gives (data of the envelope). */
export interface Routes {
  'GET session': { gives: Session }
  'POST session': { takes: SignIn; gives: Session }
  'POST session/code': { takes: { code: string }; gives: Session }
  'DELETE session': { gives: Done }
  'POST session/acting': { takes: { userId: string }; gives: Session }
  'DELETE session/acting': { gives: Session }
  'POST password/forgot': { takes: { email: string }; gives: Done }
  'POST password/reset': { takes: { token: string; password: string }; gives: Done }
}
