-- schema: a field of users that others than the user set, which rules may use.
ALTER TABLE fields ADD COLUMN managed INTEGER NOT NULL DEFAULT 0;

-- access: whom a rule shares with, where that is no role: internal, external or
-- everyone.
ALTER TABLE sharing_rules ADD COLUMN share_with {text} NOT NULL DEFAULT '';

-- tenant: raised when a managed field of a user changes, so that nodes read
-- their users again. No row is 0.
CREATE TABLE tenant_people (
  tenant_id {text} NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL
);
