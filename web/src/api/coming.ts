/** Routes that the pages already use and the generated table lacks as yet; a route of the table takes the place of one here. */
import type { Done, None, Session } from './admin'

type NoMeta = Record<string, never>

export interface ComingRoutes {
  'POST session/code': { params: None; query: None; body: { code: string }; data: Session; meta: NoMeta }
  'POST session/acting': { params: None; query: None; body: { userId: string }; data: Session; meta: NoMeta }
  'DELETE session/acting': { params: None; query: None; body: None; data: Session; meta: NoMeta }
  'POST password/forgot': { params: None; query: None; body: { email: string }; data: Done; meta: NoMeta }
  'POST password/reset': { params: None; query: None; body: { token: string; password: string }; data: Done; meta: NoMeta }
}
