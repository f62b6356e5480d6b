// Written by: go test ./internal/server -run TestGoldenAdminTypes -update
// Do not edit. The Go types of the routes (httpapi.Route: Takes, Gives) are the source.

/** Nothing: the route takes none. */
export type None = undefined;

export interface Account {
  user: Person;
  secondFactor: SecondFactor;
}

export interface Acting {
  userId: string;
}

export interface AdminCheck {
  problems: AdminProblem[];
}

export interface AdminComponent {
  name: string;
  inputs: Declaration[];
  outputs: Declaration[];
}

export interface AdminDelivery {
  providerId: string;
  inputs: unknown;
  bytes: number;
}

export interface AdminDraft {
  target: AdminTarget;
  draft: unknown;
}

export interface AdminEndpoint {
  slug: string;
  target: AdminTarget;
  auth: string;
  ready: boolean;
  lastRun: AdminRun | null;
  method: string;
  url: string;
  reply: string;
  verifier: string | null;
  tokenPrefix: string | null;
  secretSet: boolean;
  previousSet: boolean;
  runsAs: string;
  user: AdminPerson | null;
  mayIssueToken: boolean;
  inputs: Declaration[];
  outputs: Declaration[];
  figures: AdminFigures;
}

export interface AdminEndpointLine {
  slug: string;
  target: AdminTarget;
  auth: string;
  ready: boolean;
  lastRun: AdminRun | null;
}

export interface AdminEntity {
  name: string;
  fields: AdminField[];
}

export interface AdminError {
  code: string;
  message: string;
  component: string;
  line: number;
  column: number;
  stack: string;
  status: number;
  details: Record<string, unknown>;
}

export interface AdminEvent {
  id: string;
  endpoint: string;
  auth: string;
  kind: string | null;
  receivedAt: string;
  status: string;
  run: AdminRun | null;
  repeats: number;
  lastRepeatAt: string | null;
}

export interface AdminEventDetail {
  id: string;
  endpoint: string;
  auth: string;
  kind: string | null;
  receivedAt: string;
  status: string;
  run: AdminRun | null;
  repeats: number;
  lastRepeatAt: string | null;
  runs: AdminRun[];
  delivery: AdminDelivery | null;
  retriable: boolean;
  whyNot: string;
}

export interface AdminField {
  name: string;
  type: string;
  required: boolean;
  unique: boolean;
  indexed: boolean;
  options: string[];
  target: string;
}

export interface AdminFigures {
  runs: number;
  more: boolean;
  succeeded: number;
  failed: number;
  duplicates: number;
  p50Us: number;
  p95Us: number;
  hours: AdminHour[];
}

export interface AdminHeader {
  name: string;
  value: string;
}

export interface AdminHour {
  at: string;
  succeeded: number;
  failed: number;
}

export interface AdminMeasure {
  what: string;
  used: number;
  limit: number;
}

export interface AdminNames {
  entities: AdminEntity[];
  components: AdminComponent[];
  nodes: NodeDescription[];
}

export interface AdminOutcome {
  status: string;
  problems: AdminProblem[];
  result: unknown;
  meta: unknown;
  error: AdminError | null;
  trace: AdminStep[];
  console: Line[];
  used: AdminMeasure[];
  tookUs: number;
  cpuUs: number;
  user: AdminPerson | null;
}

export interface AdminPerson {
  id: string;
  email: string;
  name: string;
}

export interface AdminProblem {
  path: string;
  node: string;
  nodeId: string;
  line: number;
  column: number;
  message: string;
}

export interface AdminReply {
  status: number;
  contentType: string;
  body: string;
}

export interface AdminRetry {
  status: string;
  error: AdminError | null;
}

export interface AdminRun {
  id: string;
  startedAt: string;
  tookUs: number;
  cpuUs: number;
  target: AdminTarget;
  endpoint: string | null;
  auth: string | null;
  user: AdminPerson | null;
  requestId: string;
  eventId: string | null;
  status: string;
  skipped: string;
  tries: number;
  error: AdminError | null;
}

export interface AdminRunDetail {
  id: string;
  startedAt: string;
  tookUs: number;
  cpuUs: number;
  target: AdminTarget;
  endpoint: string | null;
  auth: string | null;
  user: AdminPerson | null;
  requestId: string;
  eventId: string | null;
  status: string;
  skipped: string;
  tries: number;
  error: AdminError | null;
  trace: AdminStep[];
  console: Line[];
  used: AdminMeasure[];
}

export interface AdminStep {
  node: string;
  type: string;
  depth: number;
  took_us: number;
  result?: unknown;
  truncated?: boolean;
  skipped?: string;
  error?: string;
  details?: unknown;
}

export interface AdminTarget {
  kind: string;
  name: string;
}

export interface AdminToken {
  token: string;
  url: string;
  sample: string;
}

export interface AdminTry {
  target: AdminTarget;
  draft: unknown;
  input: unknown;
  as: string | null;
  event: AdminTryEvent | null;
}

export interface AdminTryEvent {
  id: string;
  kind: string;
}

export interface AdminVerdict {
  accepted: boolean;
  outcome: string;
  reason: string;
  providerEventId: string | null;
  eventKind: string | null;
  canonicalEvent: unknown;
  reply: AdminReply | null;
  line: number;
  column: number;
  console: Line[];
}

export interface AdminVerifierTry {
  endpoint: string | null;
  verifier: string | null;
  source: string | null;
  secrets: string[];
  method: string | null;
  query: string | null;
  headers: AdminHeader[];
  body: string;
  bodyBase64: string | null;
}

export interface AppliedLine {
  action: string;
  kind: string;
  name: string;
  text: string;
}

export interface AutomationMemberDescription {
  name: string;
  kind: string;
  doc: string;
  required: boolean;
  values?: string[];
  low?: number;
  high?: number;
  default?: string;
}

export interface Begun {
  entities: boolean;
  sets: boolean;
  keys: boolean;
  apiOn: boolean;
  called: boolean;
  endpoints: boolean;
}

export interface Bounded {
  count: number;
  more: boolean;
}

export interface BoundedCount {
  count: number;
  more: boolean;
}

export interface Code {
  code?: string;
  recoveryCode?: string;
}

export interface ConfigApplied {
  work?: string;
  changes: AppliedLine[];
  gone: string[];
  warnings: string[];
}

export interface ConfigChange {
  edits?: ConfigEdit[];
  manifest?: string;
  prune?: boolean;
  variables?: Record<string, string>;
  expected?: ExpectedChange[] | null;
}

export interface ConfigEdit {
  kind: string;
  name?: string;
  value?: unknown;
  against?: string;
  activate?: boolean;
}

export interface ConfigKind {
  kind: string;
  section?: string;
  id?: string;
  changing: string[];
  reading: string[];
  members: ConfigMemberDescription[];
}

export interface ConfigMemberDescription {
  name: string;
  type: string;
  required?: boolean;
  default?: unknown;
  values?: string[];
  min?: number;
  max?: number;
  doc: string;
  members?: ConfigMemberDescription[];
}

export interface ConfigObject {
  kind: string;
  name: string;
  version: string;
  value: unknown;
}

export interface ConfigPlan {
  changes: PlanChange[];
  gone: string[];
  effect: PlanEffect;
  warnings: string[];
}

export interface ConfigWork {
  id?: string;
  state: WorkState;
  who?: string;
  mine: boolean;
  entity: string;
  percent: number;
  records: WorkRecords | null;
  startedAt: string | null;
  applied: ConfigApplied | null;
  error: WorkError | null;
  other: boolean;
}

export interface Counts {
  requests: number;
  errors: number;
  failed: number;
  limited: number;
  p50Ms: number;
  p95Ms: number;
}

export interface CreatedKey {
  key: KeyInfo;
  token: string;
}

export interface DataEntitiesMeta {
  count: number;
  roles: string[];
  publicHere: boolean;
}

export interface DataEntity {
  name: string;
  label: string;
  sharing: string;
  may: DataEntityMay;
  fields: DataField[];
}

export interface DataEntityMay {
  create: boolean;
  read: boolean;
  update: boolean;
  delete: boolean;
  setOwner: boolean;
}

export interface DataField {
  name: string;
  type: string;
  required: boolean;
  unique: boolean;
  filter: boolean;
  sort: boolean;
  search: boolean;
  options: string[];
  entity: string | null;
  edit: boolean;
  operators: string[];
}

export interface DataLabel {
  id: string;
  label: string;
}

export interface DataRecordMay {
  update: boolean;
  delete: boolean;
}

export interface DataRecordMeta {
  version: number;
  may: DataRecordMay;
}

export interface Declaration {
  name: string;
  type: string;
  required?: boolean;
  pattern?: string;
}

export interface Deleted {
  id: string;
  deleted: boolean;
}

export interface DeletedKey {
  id: string;
  deleted: boolean;
}

export interface DeletedRecord {
  id: string;
  deleted: boolean;
}

export interface DocumentMeta {
  publicHere: boolean;
}

export interface Done {
  success: boolean;
}

export interface Enrolment {
  secret: string;
  uri: string;
  qr: string;
}

export interface EntityLine {
  name: string;
  label: string;
  sharing: string;
  fields: number;
  indexed: number;
  rules: number;
  records: Bounded | null;
}

export interface Events {
  accepted: BoundedCount;
  failed: BoundedCount;
  failedOf: string | null;
  failedAt: string | null;
  failedRun: string | null;
  failure: string | null;
}

export interface ExpectedChange {
  kind: string;
  object: string;
  version: string;
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

export interface ExportedPart {
  text: string;
  columns: string[];
  count: number;
  next: string | null;
}

export interface Failure {
  line: number;
  reason: string;
}

export interface Forgot {
  email: string;
}

export type GateState = "open" | "shut" | "unreached";

export interface HistogramMeta {
  complete: boolean;
  countedTo: string;
  nextCursor: string | null;
}

export interface HistoryEntry {
  id: string;
  at: string;
  actor: string;
  actedAs?: string;
  action: string;
  kind: string;
  name: string;
  before: unknown;
  after: unknown;
  differences: PlanDifference[];
}

export interface ImportPart {
  format: string;
  by?: string;
  ignore?: string[];
  spreadsheet?: boolean;
  dryRun?: boolean;
  run: string;
  input?: string;
  head?: string;
  restart?: boolean;
  before?: string;
  offset: number;
  line: number;
  text: string;
  last?: boolean;
}

export interface ImportedPart {
  input: string;
  head: number;
  offset: number;
  line: number;
  behind: number;
  by: string;
  spreadsheet: boolean;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
  failures: Failure[];
  notes: string[];
  finished: boolean;
}

export interface KeyChange {
  version: string;
  name?: string | null;
  rateLimitPerMinute?: number | null;
  corsAllowedOrigins?: string[] | null;
  ipAllowlist?: string[] | null;
  expiresAt?: string | null;
}

export interface KeyInfo {
  id: string;
  name: string;
  prefix: string;
  user: KeyUser;
  rateLimitPerMinute: number;
  usedThisMinute: number;
  corsAllowedOrigins: string[];
  ipAllowlist: string[];
  expiresAt: string | null;
  lastUsedAt: string | null;
  createdAt: string;
  version: string;
  mayChange: boolean;
}

export interface KeyUser {
  id: string;
  email: string | null;
  name: string | null;
}

export interface Line {
  level: string;
  text: string;
  at_us?: number;
  line?: number;
  component?: string;
}

export interface ListMeta {
  count: number;
  hasMore: boolean;
  nextCursor: string | null;
}

export interface LogBucket {
  answered: number;
  refused: number;
  failed: number;
}

export interface LogDetail {
  id: string;
  time: string;
  requestId: string;
  method: string;
  path: string;
  endpoint: string | null;
  status: number;
  code: string | null;
  gate: string | null;
  user: LogUser | null;
  realUser: LogUser | null;
  credential: string | null;
  key: LogKey | null;
  ip: string | null;
  durationMs: number;
  query: string | null;
  request: LogMessage;
  response: LogMessage;
  reason: string | null;
  track: TrackGate[];
  fields: Record<string, string>;
  message: string | null;
}

export interface LogEntry {
  id: string;
  time: string;
  requestId: string;
  method: string;
  path: string;
  endpoint: string | null;
  status: number;
  code: string | null;
  gate: string | null;
  user: LogUser | null;
  realUser: LogUser | null;
  credential: string | null;
  key: LogKey | null;
  ip: string | null;
  durationMs: number;
}

export interface LogHistogram {
  from: string;
  to: string;
  widthMs: number;
  buckets: LogBucket[];
}

export interface LogKey {
  id: string;
  prefix: string;
  name: string | null;
}

export interface LogMessage {
  headers: Record<string, string>;
  headerNames: string[];
  body: unknown;
}

export interface LogMeta {
  count: number;
  hasMore: boolean;
  nextCursor: string | null;
  searchedTo: string | null;
}

export interface LogUser {
  id: string;
  email: string | null;
  name: string | null;
}

export interface Mails {
  waiting: BoundedCount;
  oldest: string | null;
  error: string | null;
  nextTry: string | null;
}

export interface ManifestText {
  text: string;
  version: number;
}

export interface NewKey {
  name: string;
  user?: string;
  rateLimitPerMinute?: number | null;
  corsAllowedOrigins?: string[];
  ipAllowlist?: string[];
  expiresAt?: string | null;
}

export interface NewPassword {
  currentPassword: string;
  newPassword: string;
}

export interface NodeDescription {
  type: string;
  doc: string;
  members: AutomationMemberDescription[];
  readable: boolean;
  result?: string;
}

export type NoticeKind = "failed_runs" | "failing" | "slow" | "limit" | "mails";

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

export interface Overview {
  range: string;
  from: string;
  to: string;
  requests: OverviewUsage | null;
  events: Events | null;
  mails: Mails | null;
  attention: OverviewNotice[];
  begun: Begun;
}

export interface OverviewNotice {
  kind: NoticeKind;
  name: string;
  id: string;
  count: number;
  p95Ms: number;
  since: string | null;
  text: string;
}

export interface OverviewUsage {
  now: Counts;
  before: Counts;
  widthMs: number;
  series: Counts[];
  endpoints: UsageRow[];
  moreNames: boolean;
  keys: UsageRow[];
  keysHit: number;
}

export interface Password {
  currentPassword?: string;
}

export interface Person {
  id: string;
  email: string;
  name: string;
}

export interface PlanAffected {
  count: number;
  names: string[];
}

export interface PlanChange {
  action: string;
  kind: string;
  name: string;
  object: string;
  version: string;
  path?: string;
  line?: number;
  before: unknown;
  after: unknown;
  differences: PlanDifference[];
}

export interface PlanDifference {
  path: string;
  before: unknown;
  after: unknown;
  text: string;
}

export interface PlanEffect {
  reindexed: PlanVisit[];
  fields: PlanGoneField[];
  losing: PlanAffected;
  keys: PlanAffected;
  endpoints: PlanAffected;
}

export interface PlanGoneField {
  entity: string;
  field: string;
  holding: number;
  of: number;
  hidden: boolean;
}

export interface PlanVisit {
  entity: string;
  records: number;
  more: boolean;
  hidden: boolean;
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

export interface Recovery {
  recoveryCodes: string[];
  session: Session;
}

export interface Reset {
  token: string;
  newPassword: string;
}

export interface SecondFactor {
  enrolled: boolean;
  required: boolean;
  recoveryCodes: number;
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

export interface Sent {
  to: string;
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

export interface SessionInfo {
  id: string;
  user: Person;
  current: boolean;
  stage: Stage;
  actingAs: string | null;
  ip: string;
  userAgent: string;
  signedInAt: string;
  lastUsedAt: string;
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

export interface TemplateDraft {
  name: string;
  subject: string;
  text: string;
  html: string;
}

export interface TemplateFlaw {
  member: string;
  reason: string;
}

export interface TemplatePreview {
  from: string;
  to: string;
  subject: string;
  text: string;
  html: string;
  default: boolean;
  draft: TemplateDraft;
  invalid: TemplateFlaw[];
}

export interface TenantInfo {
  id: string;
  displayName: string;
  baseUrl: string;
}

export interface TrackGate {
  gate: string;
  state: GateState;
}

export interface Unshared {
  user: string | null;
  role: string | null;
  deleted: boolean;
}

export interface Usage {
  from: string;
  to: string;
  widthMs: number;
  total: Counts;
  series: Counts[];
  rows: UsageRow[];
  more: boolean;
}

export interface UsageRow {
  name: string;
  key: LogKey | null;
  total: Counts;
  requests: number[];
  errors: number[];
}

export interface UserLine {
  id: string;
  email: string;
  name: string;
  locale: string;
  type: string;
  owner: boolean;
  active: boolean;
  pending: boolean;
  emailVerified: boolean;
  hasPassword: boolean;
  role: string;
  permissionSets: string[];
  createdAt: string;
  updatedAt: string;
}

export interface WaitingMail {
  id: string;
  to: string;
  subject: string;
  createdAt: string;
  tries: number;
  nextAt: string;
  sending: boolean;
  lastError: string;
}

export interface WaitingMails {
  count: number;
  waiting: Bounded;
}

export interface WorkError {
  code: string;
  message: string;
  details: Record<string, unknown>;
}

export interface WorkRecords {
  done: number;
  total: number;
}

export type WorkState = "none" | "running" | "done" | "failed" | "stopped";

/** Each route of the admin API, by method and path below /admin/v1/. */
export interface AdminRoutes {
  "GET account": { params: None; query: None; body: None; data: Account; meta: Record<string, never> };
  "DELETE account/factor": { params: None; query: None; body: Password; data: Done; meta: Record<string, never> };
  "POST account/factor": { params: None; query: None; body: Password; data: Enrolment; meta: Record<string, never> };
  "POST account/factor/confirm": { params: None; query: None; body: Code; data: Recovery; meta: Record<string, never> };
  "POST account/password": { params: None; query: None; body: NewPassword; data: Done; meta: Record<string, never> };
  "GET account/sessions": { params: None; query: None; body: None; data: SessionInfo[]; meta: ListMeta };
  "DELETE account/sessions/{id}": { params: { id: string }; query: None; body: None; data: Deleted; meta: Record<string, never> };
  "GET audit": { params: None; query: { user?: string | number | boolean; endpoint?: string | number | boolean; status?: string | number | boolean; credential?: string | number | boolean; key?: string | number | boolean; method?: string | number | boolean; requestId?: string | number | boolean; path?: string | number | boolean; ip?: string | number | boolean; from?: string | number | boolean; to?: string | number | boolean; cursor?: string | number | boolean; limit?: string | number | boolean }; body: None; data: LogEntry[]; meta: LogMeta };
  "GET audit/histogram": { params: None; query: { user?: string | number | boolean; endpoint?: string | number | boolean; status?: string | number | boolean; credential?: string | number | boolean; key?: string | number | boolean; method?: string | number | boolean; requestId?: string | number | boolean; path?: string | number | boolean; ip?: string | number | boolean; from?: string | number | boolean; to?: string | number | boolean; buckets?: string | number | boolean; cursor?: string | number | boolean }; body: None; data: LogHistogram; meta: HistogramMeta };
  "GET audit/tail": { params: None; query: { user?: string | number | boolean; endpoint?: string | number | boolean; status?: string | number | boolean; credential?: string | number | boolean; key?: string | number | boolean; method?: string | number | boolean; requestId?: string | number | boolean; path?: string | number | boolean; ip?: string | number | boolean; from?: string | number | boolean; to?: string | number | boolean; after?: string | number | boolean }; body: None; data: None; meta: Record<string, never> };
  "GET audit/{id}": { params: { id: string }; query: None; body: None; data: LogDetail; meta: Record<string, never> };
  "POST config/apply": { params: None; query: None; body: ConfigChange; data: ConfigApplied; meta: Record<string, never> };
  "GET config/kinds": { params: None; query: None; body: None; data: ConfigKind[]; meta: ListMeta };
  "GET config/manifest": { params: None; query: None; body: None; data: ManifestText; meta: Record<string, never> };
  "POST config/plan": { params: None; query: None; body: ConfigChange; data: ConfigPlan; meta: Record<string, never> };
  "GET config/work": { params: None; query: None; body: None; data: ConfigWork; meta: Record<string, never> };
  "GET config/{kind}": { params: { kind: string }; query: { search?: string | number | boolean; cursor?: string | number | boolean; limit?: string | number | boolean }; body: None; data: ConfigObject[]; meta: ListMeta };
  "GET config/{kind}/{name}": { params: { kind: string; name: string }; query: None; body: None; data: ConfigObject; meta: Record<string, never> };
  "GET count": { params: None; query: { entity?: string | number | boolean; search?: string | number | boolean; [key: `filter[${string}]`]: string | undefined }; body: None; data: ReachCount; meta: Record<string, never> };
  "GET data": { params: None; query: None; body: None; data: DataEntity[]; meta: DataEntitiesMeta };
  "GET data/{entity}": { params: { entity: string }; query: { limit?: string | number | boolean; cursor?: string | number | boolean; sort?: string | number | boolean; search?: string | number | boolean; [key: `filter[${string}]`]: string | undefined }; body: None; data: Record<string, unknown>[]; meta: ListMeta };
  "POST data/{entity}": { params: { entity: string }; query: None; body: Record<string, unknown>; data: Record<string, unknown>; meta: Record<string, never> };
  "GET data/{entity}/export": { params: { entity: string }; query: { format?: string | number | boolean; spreadsheet?: string | number | boolean; cursor?: string | number | boolean; sort?: string | number | boolean; search?: string | number | boolean; fields?: string | number | boolean; [key: `filter[${string}]`]: string | undefined }; body: None; data: ExportedPart; meta: Record<string, never> };
  "POST data/{entity}/import": { params: { entity: string }; query: None; body: ImportPart; data: ImportedPart; meta: Record<string, never> };
  "DELETE data/{entity}/{id}": { params: { entity: string; id: string }; query: None; body: None; data: DeletedRecord; meta: Record<string, never> };
  "GET data/{entity}/{id}": { params: { entity: string; id: string }; query: None; body: None; data: Record<string, unknown>; meta: DataRecordMeta };
  "PATCH data/{entity}/{id}": { params: { entity: string; id: string }; query: { version?: string | number | boolean }; body: Record<string, unknown>; data: Record<string, unknown>; meta: DataRecordMeta };
  "DELETE data/{entity}/{id}/shares": { params: { entity: string; id: string }; query: None; body: ShareOf; data: Unshared; meta: Record<string, never> };
  "GET data/{entity}/{id}/shares": { params: { entity: string; id: string }; query: None; body: None; data: RecordShare[]; meta: ListMeta };
  "POST data/{entity}/{id}/shares": { params: { entity: string; id: string }; query: None; body: ShareWith; data: RecordShare; meta: Record<string, never> };
  "GET data/{entity}/{id}/viewers": { params: { entity: string; id: string }; query: { type?: string | number | boolean; cursor?: string | number | boolean }; body: None; data: Seer[]; meta: SeersMeta };
  "POST drafts/check": { params: None; query: None; body: AdminDraft; data: AdminCheck; meta: Record<string, never> };
  "GET drafts/names": { params: None; query: None; body: None; data: AdminNames; meta: Record<string, never> };
  "GET endpoints": { params: None; query: None; body: None; data: AdminEndpointLine[]; meta: ListMeta };
  "GET endpoints/{slug}": { params: { slug: string }; query: None; body: None; data: AdminEndpoint; meta: Record<string, never> };
  "POST endpoints/{slug}/token": { params: { slug: string }; query: None; body: None; data: AdminToken; meta: Record<string, never> };
  "GET entities": { params: None; query: None; body: None; data: EntityLine[]; meta: ListMeta };
  "GET events": { params: None; query: { endpoint?: string | number | boolean; kind?: string | number | boolean; status?: string | number | boolean; key?: string | number | boolean; since?: string | number | boolean; until?: string | number | boolean; limit?: string | number | boolean; cursor?: string | number | boolean }; body: None; data: AdminEvent[]; meta: ListMeta };
  "GET events/{id}": { params: { id: string }; query: None; body: None; data: AdminEventDetail; meta: Record<string, never> };
  "POST events/{id}/retry": { params: { id: string }; query: None; body: None; data: AdminRetry; meta: Record<string, never> };
  "GET history": { params: None; query: { kind?: string | number | boolean; name?: string | number | boolean; who?: string | number | boolean; cursor?: string | number | boolean; limit?: string | number | boolean }; body: None; data: HistoryEntry[]; meta: ListMeta };
  "GET keys": { params: None; query: { cursor?: string | number | boolean; limit?: string | number | boolean; user?: string | number | boolean; id?: string | number | boolean }; body: None; data: KeyInfo[]; meta: ListMeta };
  "POST keys": { params: None; query: None; body: NewKey; data: CreatedKey; meta: Record<string, never> };
  "DELETE keys/{id}": { params: { id: string }; query: None; body: None; data: DeletedKey; meta: Record<string, never> };
  "PATCH keys/{id}": { params: { id: string }; query: None; body: KeyChange; data: KeyInfo; meta: Record<string, never> };
  "GET labels": { params: None; query: { entity?: string | number | boolean; ids?: string | number | boolean; search?: string | number | boolean }; body: None; data: DataLabel[]; meta: ListMeta };
  "GET mails": { params: None; query: None; body: None; data: WaitingMail[]; meta: WaitingMails };
  "GET openapi": { params: None; query: { as?: string | number | boolean }; body: None; data: Record<string, unknown>; meta: DocumentMeta };
  "GET overview": { params: None; query: { range?: string | number | boolean }; body: None; data: Overview; meta: Record<string, never> };
  "POST password/forgot": { params: None; query: None; body: Forgot; data: Done; meta: Record<string, never> };
  "POST password/reset": { params: None; query: None; body: Reset; data: Done; meta: Record<string, never> };
  "GET reach": { params: None; query: { entity?: string | number | boolean; owned_by_role?: string | number | boolean; [key: `where[${string}]`]: string | undefined; share_with_role?: string | number | boolean; share_with?: string | number | boolean }; body: None; data: Reach; meta: Record<string, never> };
  "GET runs": { params: None; query: { kind?: string | number | boolean; target?: string | number | boolean; status?: string | number | boolean; endpoint?: string | number | boolean; event?: string | number | boolean; since?: string | number | boolean; until?: string | number | boolean; limit?: string | number | boolean; cursor?: string | number | boolean }; body: None; data: AdminRun[]; meta: ListMeta };
  "POST runs": { params: None; query: None; body: AdminTry; data: AdminOutcome; meta: Record<string, never> };
  "GET runs/{id}": { params: { id: string }; query: None; body: None; data: AdminRunDetail; meta: Record<string, never> };
  "DELETE session": { params: None; query: None; body: None; data: Done; meta: Record<string, never> };
  "GET session": { params: None; query: None; body: None; data: Session; meta: Record<string, never> };
  "POST session": { params: None; query: None; body: SignIn; data: Session; meta: Record<string, never> };
  "DELETE session/acting": { params: None; query: None; body: None; data: Session; meta: Record<string, never> };
  "POST session/acting": { params: None; query: None; body: Acting; data: Session; meta: Record<string, never> };
  "POST session/code": { params: None; query: None; body: Code; data: Session; meta: Record<string, never> };
  "GET sessions": { params: None; query: { limit?: string | number | boolean; cursor?: string | number | boolean }; body: None; data: SessionInfo[]; meta: ListMeta };
  "DELETE sessions/{id}": { params: { id: string }; query: None; body: None; data: Deleted; meta: Record<string, never> };
  "POST templates/preview": { params: None; query: None; body: TemplateDraft; data: TemplatePreview; meta: Record<string, never> };
  "POST templates/test": { params: None; query: None; body: TemplateDraft; data: Sent; meta: Record<string, never> };
  "GET usage": { params: None; query: { from?: string | number | boolean; to?: string | number | boolean; by?: string | number | boolean; name?: string | number | boolean; buckets?: string | number | boolean }; body: None; data: Usage; meta: Record<string, never> };
  "GET users": { params: None; query: { search?: string | number | boolean; type?: string | number | boolean; active?: string | number | boolean; cursor?: string | number | boolean; limit?: string | number | boolean }; body: None; data: UserLine[]; meta: ListMeta };
  "POST users/{id}/resend": { params: { id: string }; query: None; body: None; data: Sent; meta: Record<string, never> };
  "POST verifier/try": { params: None; query: None; body: AdminVerifierTry; data: AdminVerdict; meta: Record<string, never> };
  "GET why": { params: None; query: { user?: string | number | boolean; entity?: string | number | boolean; id?: string | number | boolean; verb?: string | number | boolean; field?: string | number | boolean }; body: None; data: Explained; meta: Record<string, never> };
}

/** The routes as values: where they are, and the system permissions of which the viewer needs one. */
export const adminRoutes = {
  "GET account": { method: "GET", path: "/admin/v1/account", needs: ["any staff"] },
  "DELETE account/factor": { method: "DELETE", path: "/admin/v1/account/factor", needs: ["any staff"] },
  "POST account/factor": { method: "POST", path: "/admin/v1/account/factor", needs: ["any staff, before the second factor"] },
  "POST account/factor/confirm": { method: "POST", path: "/admin/v1/account/factor/confirm", needs: ["any staff, before the second factor"] },
  "POST account/password": { method: "POST", path: "/admin/v1/account/password", needs: ["any staff"] },
  "GET account/sessions": { method: "GET", path: "/admin/v1/account/sessions", needs: ["any staff"] },
  "DELETE account/sessions/{id}": { method: "DELETE", path: "/admin/v1/account/sessions/{id}", needs: ["any staff"] },
  "GET audit": { method: "GET", path: "/admin/v1/audit", needs: ["manage_endpoints"] },
  "GET audit/histogram": { method: "GET", path: "/admin/v1/audit/histogram", needs: ["manage_endpoints"] },
  "GET audit/tail": { method: "GET", path: "/admin/v1/audit/tail", needs: ["manage_endpoints"] },
  "GET audit/{id}": { method: "GET", path: "/admin/v1/audit/{id}", needs: ["manage_endpoints"] },
  "POST config/apply": { method: "POST", path: "/admin/v1/config/apply", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings", "can_manage_external_users"] },
  "GET config/kinds": { method: "GET", path: "/admin/v1/config/kinds", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings"] },
  "GET config/manifest": { method: "GET", path: "/admin/v1/config/manifest", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings"] },
  "POST config/plan": { method: "POST", path: "/admin/v1/config/plan", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings", "can_manage_external_users"] },
  "GET config/work": { method: "GET", path: "/admin/v1/config/work", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings"] },
  "GET config/{kind}": { method: "GET", path: "/admin/v1/config/{kind}", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings"] },
  "GET config/{kind}/{name}": { method: "GET", path: "/admin/v1/config/{kind}/{name}", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings"] },
  "GET count": { method: "GET", path: "/admin/v1/count", needs: ["any staff"] },
  "GET data": { method: "GET", path: "/admin/v1/data", needs: ["any staff"] },
  "GET data/{entity}": { method: "GET", path: "/admin/v1/data/{entity}", needs: ["any staff"] },
  "POST data/{entity}": { method: "POST", path: "/admin/v1/data/{entity}", needs: ["any staff"] },
  "GET data/{entity}/export": { method: "GET", path: "/admin/v1/data/{entity}/export", needs: ["any staff"] },
  "POST data/{entity}/import": { method: "POST", path: "/admin/v1/data/{entity}/import", needs: ["any staff"] },
  "DELETE data/{entity}/{id}": { method: "DELETE", path: "/admin/v1/data/{entity}/{id}", needs: ["any staff"] },
  "GET data/{entity}/{id}": { method: "GET", path: "/admin/v1/data/{entity}/{id}", needs: ["any staff"] },
  "PATCH data/{entity}/{id}": { method: "PATCH", path: "/admin/v1/data/{entity}/{id}", needs: ["any staff"] },
  "DELETE data/{entity}/{id}/shares": { method: "DELETE", path: "/admin/v1/data/{entity}/{id}/shares", needs: ["any staff"] },
  "GET data/{entity}/{id}/shares": { method: "GET", path: "/admin/v1/data/{entity}/{id}/shares", needs: ["any staff"] },
  "POST data/{entity}/{id}/shares": { method: "POST", path: "/admin/v1/data/{entity}/{id}/shares", needs: ["any staff"] },
  "GET data/{entity}/{id}/viewers": { method: "GET", path: "/admin/v1/data/{entity}/{id}/viewers", needs: ["manage_users", "manage_permissions"] },
  "POST drafts/check": { method: "POST", path: "/admin/v1/drafts/check", needs: ["manage_endpoints"] },
  "GET drafts/names": { method: "GET", path: "/admin/v1/drafts/names", needs: ["manage_endpoints"] },
  "GET endpoints": { method: "GET", path: "/admin/v1/endpoints", needs: ["manage_endpoints"] },
  "GET endpoints/{slug}": { method: "GET", path: "/admin/v1/endpoints/{slug}", needs: ["manage_endpoints"] },
  "POST endpoints/{slug}/token": { method: "POST", path: "/admin/v1/endpoints/{slug}/token", needs: ["manage_endpoints"] },
  "GET entities": { method: "GET", path: "/admin/v1/entities", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings"] },
  "GET events": { method: "GET", path: "/admin/v1/events", needs: ["manage_endpoints"] },
  "GET events/{id}": { method: "GET", path: "/admin/v1/events/{id}", needs: ["manage_endpoints"] },
  "POST events/{id}/retry": { method: "POST", path: "/admin/v1/events/{id}/retry", needs: ["manage_endpoints"] },
  "GET history": { method: "GET", path: "/admin/v1/history", needs: ["manage_users", "manage_permissions", "manage_entities", "manage_endpoints", "tenant_settings"] },
  "GET keys": { method: "GET", path: "/admin/v1/keys", needs: ["any staff"] },
  "POST keys": { method: "POST", path: "/admin/v1/keys", needs: ["any staff"] },
  "DELETE keys/{id}": { method: "DELETE", path: "/admin/v1/keys/{id}", needs: ["any staff"] },
  "PATCH keys/{id}": { method: "PATCH", path: "/admin/v1/keys/{id}", needs: ["any staff"] },
  "GET labels": { method: "GET", path: "/admin/v1/labels", needs: ["any staff"] },
  "GET mails": { method: "GET", path: "/admin/v1/mails", needs: ["tenant_settings", "manage_users"] },
  "GET openapi": { method: "GET", path: "/admin/v1/openapi", needs: ["any staff"] },
  "GET overview": { method: "GET", path: "/admin/v1/overview", needs: ["any staff"] },
  "POST password/forgot": { method: "POST", path: "/admin/v1/password/forgot", needs: [] },
  "POST password/reset": { method: "POST", path: "/admin/v1/password/reset", needs: [] },
  "GET reach": { method: "GET", path: "/admin/v1/reach", needs: ["manage_permissions"] },
  "GET runs": { method: "GET", path: "/admin/v1/runs", needs: ["manage_endpoints"] },
  "POST runs": { method: "POST", path: "/admin/v1/runs", needs: ["manage_endpoints"] },
  "GET runs/{id}": { method: "GET", path: "/admin/v1/runs/{id}", needs: ["manage_endpoints"] },
  "DELETE session": { method: "DELETE", path: "/admin/v1/session", needs: ["any staff, before the second factor"] },
  "GET session": { method: "GET", path: "/admin/v1/session", needs: ["any staff, before the second factor"] },
  "POST session": { method: "POST", path: "/admin/v1/session", needs: [] },
  "DELETE session/acting": { method: "DELETE", path: "/admin/v1/session/acting", needs: ["any staff"] },
  "POST session/acting": { method: "POST", path: "/admin/v1/session/acting", needs: ["login_as"] },
  "POST session/code": { method: "POST", path: "/admin/v1/session/code", needs: ["any staff, before the second factor"] },
  "GET sessions": { method: "GET", path: "/admin/v1/sessions", needs: ["manage_users"] },
  "DELETE sessions/{id}": { method: "DELETE", path: "/admin/v1/sessions/{id}", needs: ["manage_users"] },
  "POST templates/preview": { method: "POST", path: "/admin/v1/templates/preview", needs: ["tenant_settings", "manage_users"] },
  "POST templates/test": { method: "POST", path: "/admin/v1/templates/test", needs: ["tenant_settings"] },
  "GET usage": { method: "GET", path: "/admin/v1/usage", needs: ["manage_endpoints"] },
  "GET users": { method: "GET", path: "/admin/v1/users", needs: ["manage_users", "can_manage_external_users"] },
  "POST users/{id}/resend": { method: "POST", path: "/admin/v1/users/{id}/resend", needs: ["manage_users", "can_manage_external_users"] },
  "POST verifier/try": { method: "POST", path: "/admin/v1/verifier/try", needs: ["manage_endpoints"] },
  "GET why": { method: "GET", path: "/admin/v1/why", needs: ["manage_users", "manage_permissions"] },
} as const satisfies Record<keyof AdminRoutes, { method: string; path: string; needs: readonly string[] }>;
