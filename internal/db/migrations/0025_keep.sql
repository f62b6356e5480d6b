-- schema: how many days records of an entity type are kept; 0 is for ever. The index lists
-- the tenants for which something expires.
ALTER TABLE entities ADD COLUMN keep_days INTEGER NOT NULL DEFAULT 0;
CREATE INDEX entities_keeping ON entities (tenant_id) WHERE keep_days > 0;
