-- A field's index rows and a rule's matches stand under a name of their own, ''
-- for the field's or rule's: those that a change of configuration makes anew
-- are filled under another one while the present ones are in use.
ALTER TABLE fields ADD COLUMN index_name {text} NOT NULL DEFAULT '';
ALTER TABLE sharing_rules ADD COLUMN match_name {text} NOT NULL DEFAULT '';

-- access: the change of configuration that is being made ready in short steps,
-- at most one a tenant. work is JSON; the position is the walk and the
-- created_at it has come to; records after top were written to follow it.
CREATE TABLE builds (
  tenant_id {text} NOT NULL,
  build_id {text} NOT NULL,
  work {text} NOT NULL,
  walk BIGINT NOT NULL,
  after_at BIGINT NOT NULL,
  top_at BIGINT NOT NULL,
  done BIGINT NOT NULL,
  total BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  beat_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id)
);
-- What no configuration names any more, to be removed in short steps after
-- due_at: index rows (kind 'values'), matches ('matches'), and names that roles
-- had for the time of a change ('role': becomes is the role's own).
CREATE TABLE leftovers (
  tenant_id {text} NOT NULL,
  kind {text} NOT NULL,
  entity {text} NOT NULL,
  name {text} NOT NULL,
  becomes {text} NOT NULL,
  due_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, kind, entity, name)
);

-- endpoint: retention finds what is old without reading all that is not.
CREATE INDEX events_received ON events (tenant_id, received_at);
