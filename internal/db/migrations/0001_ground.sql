-- The ground: tenants, their configuration, users, records, keys, logs.
-- {text} {json} {bytes} are the engine's types ({text} compares bytewise on
-- both); {clustered} stores a table in the order of its primary key where the
-- engine can. tenant_id comes first in every key and index, so a distributed
-- PostgreSQL can shard on it; tenant_hosts is the one exception, because the
-- host is what the tenant is found by. Each table belongs to one package.

-- tenant: one row a customer; version counts changes of configuration.
CREATE TABLE tenants (
  tenant_id {text} NOT NULL PRIMARY KEY,
  display_name {text} NOT NULL,
  base_url {text} NOT NULL,
  settings {text} NOT NULL,
  version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE TABLE tenant_hosts (
  tenant_id {text} NOT NULL,
  host {text} NOT NULL,
  admin INTEGER NOT NULL,
  PRIMARY KEY (host)
);
CREATE INDEX tenant_hosts_tenant ON tenant_hosts (tenant_id, host);
-- The last tick drawn: created_at of the newest record or user (decisions 2.10).
CREATE TABLE tenant_clocks (
  tenant_id {text} NOT NULL PRIMARY KEY,
  last BIGINT NOT NULL
);
CREATE TABLE config_changes (
  tenant_id {text} NOT NULL,
  change_id {text} NOT NULL,
  changed_at BIGINT NOT NULL,
  actor {text} NOT NULL,
  action {text} NOT NULL,
  kind {text} NOT NULL,
  name {text} NOT NULL,
  before_value {text},
  after_value {text},
  PRIMARY KEY (tenant_id, change_id)
);

-- schema: entity types and their fields; the entity 'user' holds the custom fields of users.
CREATE TABLE entities (
  tenant_id {text} NOT NULL,
  name {text} NOT NULL,
  label {text} NOT NULL,
  sharing {text} NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
CREATE TABLE fields (
  tenant_id {text} NOT NULL,
  entity {text} NOT NULL,
  name {text} NOT NULL,
  position INTEGER NOT NULL,
  type {text} NOT NULL,
  required INTEGER NOT NULL,
  is_unique INTEGER NOT NULL,
  is_indexed INTEGER NOT NULL,
  options {text} NOT NULL,
  target {text} NOT NULL,
  PRIMARY KEY (tenant_id, entity, name)
);

-- access: the role tree, permission sets, sharing rules.
CREATE TABLE roles (
  tenant_id {text} NOT NULL,
  name {text} NOT NULL,
  parent {text} NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
CREATE TABLE permission_sets (
  tenant_id {text} NOT NULL,
  name {text} NOT NULL,
  definition {text} NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
CREATE TABLE sharing_rules (
  tenant_id {text} NOT NULL,
  rule_id {text} NOT NULL,
  entity {text} NOT NULL,
  owned_by_role {text} NOT NULL,
  conditions {text} NOT NULL,
  share_with_role {text} NOT NULL,
  access {text} NOT NULL,
  PRIMARY KEY (tenant_id, rule_id)
);

-- user: staff and end-users. email_key is the canonical form that is compared.
CREATE TABLE users (
  tenant_id {text} NOT NULL,
  user_id {text} NOT NULL,
  email {text} NOT NULL,
  email_key {text} NOT NULL,
  name {text} NOT NULL,
  locale {text} NOT NULL,
  user_type {text} NOT NULL,
  is_owner INTEGER NOT NULL,
  active INTEGER NOT NULL,
  email_verified INTEGER NOT NULL,
  role {text} NOT NULL,
  password_hash {text} NOT NULL,
  custom_data {json} NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, user_id)
);
CREATE UNIQUE INDEX users_email ON users (tenant_id, email_key);
CREATE UNIQUE INDEX users_created_at ON users (tenant_id, created_at);
CREATE INDEX users_role ON users (tenant_id, role);
CREATE TABLE user_permission_sets (
  tenant_id {text} NOT NULL,
  user_id {text} NOT NULL,
  permission_set {text} NOT NULL,
  PRIMARY KEY (tenant_id, user_id, permission_set)
);
CREATE INDEX user_permission_sets_set ON user_permission_sets (tenant_id, permission_set, user_id);

-- records: created_at strictly grows per tenant in commit order, so it alone
-- orders lists and identifies a record inside its tenant; the tables that point
-- at records for lists hold it as record_created_at. owner_role is the role of
-- the owner, kept true when a user's role changes.
CREATE TABLE records (
  tenant_id {text} NOT NULL,
  entity {text} NOT NULL,
  record_id {text} NOT NULL,
  owner_id {text} NOT NULL,
  owner_role {text} NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  created_by {text} NOT NULL,
  updated_by {text} NOT NULL,
  version BIGINT NOT NULL,
  data {json} NOT NULL,
  PRIMARY KEY (tenant_id, entity, created_at)
) {clustered};
CREATE UNIQUE INDEX records_id ON records (tenant_id, entity, record_id);
CREATE INDEX records_owner ON records (tenant_id, entity, owner_id, created_at);
CREATE INDEX records_owner_role ON records (tenant_id, entity, owner_role, created_at);
-- One row for each unique, indexed or reference field that has a value.
CREATE TABLE field_values (
  tenant_id {text} NOT NULL,
  entity {text} NOT NULL,
  field {text} NOT NULL,
  value {text} NOT NULL,
  record_created_at BIGINT NOT NULL,
  is_unique INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, entity, field, value, record_created_at)
) {clustered};
CREATE UNIQUE INDEX field_values_unique ON field_values (tenant_id, entity, field, value) WHERE is_unique = 1;
-- principal is 'user:<id>' or 'role:<name>'; access is 'read' or 'edit'.
CREATE TABLE shares (
  tenant_id {text} NOT NULL,
  entity {text} NOT NULL,
  record_id {text} NOT NULL,
  principal {text} NOT NULL,
  access {text} NOT NULL,
  record_created_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by {text} NOT NULL,
  PRIMARY KEY (tenant_id, entity, record_id, principal)
) {clustered};
CREATE INDEX shares_principal ON shares (tenant_id, entity, principal, record_created_at);
-- Which records a sharing rule by field value holds for, kept true on every write.
CREATE TABLE rule_matches (
  tenant_id {text} NOT NULL,
  rule_id {text} NOT NULL,
  record_created_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, rule_id, record_created_at)
) {clustered};

-- apikey: only the hash of a token is kept.
CREATE TABLE api_keys (
  tenant_id {text} NOT NULL,
  key_id {text} NOT NULL,
  user_id {text} NOT NULL,
  name {text} NOT NULL,
  token_hash {text} NOT NULL,
  prefix {text} NOT NULL,
  rate_limit_per_minute BIGINT NOT NULL,
  cors_allowed_origins {text} NOT NULL,
  ip_allowlist {text} NOT NULL,
  expires_at BIGINT,
  last_used_at BIGINT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, key_id)
);
CREATE UNIQUE INDEX api_keys_token ON api_keys (tenant_id, token_hash);

-- audit: entry_id grows with time. Not {clustered}: SQLite keeps a row of over 1 KiB
-- in overflow pages then, three times the disk for an entry with a body of 1 KiB.
-- endpoint is '/data/contact', '/me', '/custom/slug', '/auth/login'.
CREATE TABLE audit_log (
  tenant_id {text} NOT NULL,
  entry_id {text} NOT NULL,
  at BIGINT NOT NULL,
  user_id {text} NOT NULL,
  auth {text} NOT NULL,
  method {text} NOT NULL,
  path {text} NOT NULL,
  endpoint {text} NOT NULL,
  status INTEGER NOT NULL,
  ip {text} NOT NULL,
  duration_us BIGINT NOT NULL,
  request_id {text} NOT NULL,
  request {text} NOT NULL,
  response {text} NOT NULL,
  PRIMARY KEY (tenant_id, entry_id)
);
CREATE INDEX audit_log_user ON audit_log (tenant_id, user_id, entry_id);
CREATE INDEX audit_log_endpoint ON audit_log (tenant_id, endpoint, entry_id);
CREATE INDEX audit_log_errors ON audit_log (tenant_id, entry_id) WHERE status >= 400;
-- E-mail addresses of users with entries: they are asked for after the user is gone.
CREATE TABLE audit_users (
  tenant_id {text} NOT NULL,
  email_key {text} NOT NULL,
  user_id {text} NOT NULL,
  email {text} NOT NULL,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, email_key, user_id)
);
CREATE INDEX audit_users_user ON audit_users (tenant_id, user_id, seen_at);
-- Per-minute rollups; minute is the microsecond a minute begins at. Each answer
-- counts in one bucket: the first that has its milliseconds, or slower.
CREATE TABLE usage_minutes (
  tenant_id {text} NOT NULL,
  minute BIGINT NOT NULL,
  endpoint {text} NOT NULL,
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  latency_us BIGINT NOT NULL,
  le_5 BIGINT NOT NULL,
  le_25 BIGINT NOT NULL,
  le_100 BIGINT NOT NULL,
  le_500 BIGINT NOT NULL,
  le_2500 BIGINT NOT NULL,
  slower BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, minute, endpoint)
);
