-- What a tenant defines itself, and what came of it.

-- custom: logic components, automations, custom endpoints. definition is JSON;
-- users are in it by id. Secrets are sealed; of a webhook token there is only the hash.
CREATE TABLE logic_components (
  tenant_id {text} NOT NULL,
  name {text} NOT NULL,
  definition {text} NOT NULL,
  source {text} NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
CREATE TABLE automations (
  tenant_id {text} NOT NULL,
  name {text} NOT NULL,
  definition {text} NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
CREATE TABLE custom_endpoints (
  tenant_id {text} NOT NULL,
  slug {text} NOT NULL,
  definition {text} NOT NULL,
  webhook_secret {text} NOT NULL,
  previous_webhook_secret {text} NOT NULL,
  token_hash {text} NOT NULL,
  token_prefix {text} NOT NULL,
  PRIMARY KEY (tenant_id, slug)
);

-- endpoint: accepted deliveries, what they were recognized by, and runs.
CREATE TABLE events (
  tenant_id {text} NOT NULL,
  event_id {text} NOT NULL,
  slug {text} NOT NULL,
  auth {text} NOT NULL,
  kind {text} NOT NULL,
  received_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, event_id)
);
-- One row for each delivery that could come again; the key is that one never
-- has two effects (specification, "Events" 1).
CREATE TABLE event_keys (
  tenant_id {text} NOT NULL,
  slug {text} NOT NULL,
  key_hash {text} NOT NULL,
  event_id {text} NOT NULL,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, slug, key_hash)
) {clustered};
CREATE INDEX event_keys_seen ON event_keys (tenant_id, seen_at);
-- payload is what a failed delivery needs to be run again, sealed.
CREATE TABLE runs (
  tenant_id {text} NOT NULL,
  run_id {text} NOT NULL,
  started_at BIGINT NOT NULL,
  took_us BIGINT NOT NULL,
  cpu_us BIGINT NOT NULL,
  target_kind {text} NOT NULL,
  target {text} NOT NULL,
  slug {text} NOT NULL,
  auth {text} NOT NULL,
  user_id {text} NOT NULL,
  request_id {text} NOT NULL,
  event_id {text} NOT NULL,
  status {text} NOT NULL,
  error_code {text} NOT NULL,
  error {text} NOT NULL,
  tries INTEGER NOT NULL,
  trace {text} NOT NULL,
  console {text} NOT NULL,
  payload {text} NOT NULL,
  PRIMARY KEY (tenant_id, run_id)
) {clustered};
CREATE INDEX runs_started ON runs (tenant_id, started_at);
