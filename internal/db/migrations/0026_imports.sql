-- Where imports of records stand. Each is known by its entity type and the digest of the
-- first lines of its input, and is kept for 30 days. state is JSON: the place in the input
-- and what was counted.
CREATE TABLE imports (
  tenant_id {text} NOT NULL,
  entity {text} NOT NULL,
  input {text} NOT NULL,
  run {text} NOT NULL,
  done_bytes BIGINT NOT NULL,
  finished INTEGER NOT NULL,
  state {text} NOT NULL,
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, entity, input)
) {clustered};
