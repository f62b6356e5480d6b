-- The index of field values has the reach before the value, and numbers in a form
-- that is in their order, so that a viewer's records are in it in the order of their
-- values. A record without a value in an indexed field is in it, too. The program
-- fills the table (orderValues).
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
  PRIMARY KEY (tenant_id, entity, field, reach, value, record_created_at)
) {clustered};
