-- Filtered lists are unions of index ranges. reach is a way in which the record
-- can be seen: '' for who sees all (and for uniqueness and references); of a
-- field that is indexed and not unique also 'o:' || owner, 'r:' || owner's role,
-- 's:' || principal of each share, 'm:' || each sharing rule that matches.
DROP INDEX field_values_unique;
ALTER TABLE field_values RENAME TO field_values_old;
CREATE TABLE field_values (
  tenant_id {text} NOT NULL,
  entity {text} NOT NULL,
  field {text} NOT NULL,
  value {text} NOT NULL,
  reach {text} NOT NULL,
  record_created_at BIGINT NOT NULL,
  is_unique INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, entity, field, value, reach, record_created_at)
) {clustered};
INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
SELECT tenant_id, entity, field, value, '', record_created_at, is_unique FROM field_values_old;
INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
SELECT v.tenant_id, v.entity, v.field, v.value, 'o:' || r.owner_id, v.record_created_at, 0
FROM field_values_old v
JOIN fields f ON f.tenant_id = v.tenant_id AND f.entity = v.entity AND f.name = v.field AND f.is_indexed = 1 AND f.is_unique = 0
JOIN records r ON r.tenant_id = v.tenant_id AND r.entity = v.entity AND r.created_at = v.record_created_at;
INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
SELECT v.tenant_id, v.entity, v.field, v.value, 'r:' || r.owner_role, v.record_created_at, 0
FROM field_values_old v
JOIN fields f ON f.tenant_id = v.tenant_id AND f.entity = v.entity AND f.name = v.field AND f.is_indexed = 1 AND f.is_unique = 0
JOIN records r ON r.tenant_id = v.tenant_id AND r.entity = v.entity AND r.created_at = v.record_created_at
WHERE r.owner_role <> '';
INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
SELECT v.tenant_id, v.entity, v.field, v.value, 's:' || s.principal, v.record_created_at, 0
FROM field_values_old v
JOIN fields f ON f.tenant_id = v.tenant_id AND f.entity = v.entity AND f.name = v.field AND f.is_indexed = 1 AND f.is_unique = 0
JOIN records r ON r.tenant_id = v.tenant_id AND r.entity = v.entity AND r.created_at = v.record_created_at
JOIN shares s ON s.tenant_id = r.tenant_id AND s.entity = r.entity AND s.record_id = r.record_id;
INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
SELECT v.tenant_id, v.entity, v.field, v.value, 'm:' || m.rule_id, v.record_created_at, 0
FROM field_values_old v
JOIN fields f ON f.tenant_id = v.tenant_id AND f.entity = v.entity AND f.name = v.field AND f.is_indexed = 1 AND f.is_unique = 0
JOIN sharing_rules q ON q.tenant_id = v.tenant_id AND q.entity = v.entity
JOIN rule_matches m ON m.tenant_id = q.tenant_id AND m.rule_id = q.rule_id AND m.record_created_at = v.record_created_at;
DROP TABLE field_values_old;
CREATE UNIQUE INDEX field_values_unique ON field_values (tenant_id, entity, field, value) WHERE is_unique = 1;
