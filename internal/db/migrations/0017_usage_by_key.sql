-- Usage tells failures (5xx) and limits hit (429) apart, and times in buckets
-- that are a factor of about two apart. Of rows from before, the old buckets
-- are wider: le_25 has everything over 5 ms.
ALTER TABLE usage_minutes ADD COLUMN failed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_minutes ADD COLUMN limited BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_minutes ADD COLUMN le_1 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_minutes ADD COLUMN le_2 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_minutes ADD COLUMN le_10 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_minutes ADD COLUMN le_50 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_minutes ADD COLUMN le_250 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_minutes ADD COLUMN le_1000 BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_minutes ADD COLUMN le_5000 BIGINT NOT NULL DEFAULT 0;
-- The same by API key. A row is of a minute or, once it is a day old, of
-- fifteen.
CREATE TABLE usage_keys (
  tenant_id {text} NOT NULL,
  minute BIGINT NOT NULL,
  key_id {text} NOT NULL,
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  limited BIGINT NOT NULL,
  latency_us BIGINT NOT NULL,
  le_1 BIGINT NOT NULL,
  le_2 BIGINT NOT NULL,
  le_5 BIGINT NOT NULL,
  le_10 BIGINT NOT NULL,
  le_25 BIGINT NOT NULL,
  le_50 BIGINT NOT NULL,
  le_100 BIGINT NOT NULL,
  le_250 BIGINT NOT NULL,
  le_500 BIGINT NOT NULL,
  le_1000 BIGINT NOT NULL,
  le_2500 BIGINT NOT NULL,
  le_5000 BIGINT NOT NULL,
  slower BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, minute, key_id)
) {clustered};
-- A user's own keys, page by page.
CREATE INDEX api_keys_user ON api_keys (tenant_id, user_id, key_id);
