-- One row for each request with an Idempotency-Key that was done, kept for a day.
-- Key and body are keyed hashes; outcome has the ids of the records, and the errors of
-- single items.
CREATE TABLE idempotency_keys (
  tenant_id {text} NOT NULL,
  user_id {text} NOT NULL,
  key_hash {text} NOT NULL,
  body_hash {text} NOT NULL,
  outcome {text} NOT NULL,
  done_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, user_id, key_hash)
) {clustered};
CREATE INDEX idempotency_keys_done ON idempotency_keys (tenant_id, done_at);
