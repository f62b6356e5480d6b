-- since: the version of the configuration that made the role; 0 for those from
-- before. Shares name a role together with it, so that shares of a role that is
-- gone are not those of a later one of its name. Those of roles that are gone
-- already are left for the sweep.
ALTER TABLE roles ADD COLUMN since BIGINT NOT NULL DEFAULT 0;
INSERT INTO leftovers (tenant_id, kind, entity, name, becomes, due_at)
SELECT DISTINCT s.tenant_id, 'shares', '', s.principal, '', 0 FROM shares s
WHERE s.principal LIKE 'role:%'
AND NOT EXISTS (SELECT 1 FROM roles r WHERE r.tenant_id = s.tenant_id AND 'role:' || r.name = s.principal);
