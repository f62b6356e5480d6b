-- endpoint: the runs of one request are found by its id.
CREATE INDEX runs_request ON runs (tenant_id, request_id);

-- schema: an entity type that was renamed keeps what its records are stored
-- under; '' is its name.
ALTER TABLE entities ADD COLUMN stored_as {text} NOT NULL DEFAULT '';
-- What the values of a field stand under in stored data, where that is not its
-- name: it was renamed, or its name stands for another field's. A field that is
-- removed keeps its row, so that its data is back with it.
CREATE TABLE field_members (
  tenant_id {text} NOT NULL,
  entity {text} NOT NULL,
  name {text} NOT NULL,
  member {text} NOT NULL,
  PRIMARY KEY (tenant_id, entity, name)
) {clustered};

-- tenant: tenants that are being deleted; the name is free when the row is gone.
CREATE TABLE tenant_deletions (
  tenant_id {text} NOT NULL PRIMARY KEY,
  begun_at BIGINT NOT NULL
);
