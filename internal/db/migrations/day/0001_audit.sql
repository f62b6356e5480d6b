-- A block is a number of entries of one tenant that were written together. head
-- has what filters ask for, bodies the requests and answers; both are
-- compressed. last_id and first_id are the greatest and least id of its entries.
CREATE TABLE audit_blocks (
  tenant_id {text} NOT NULL,
  day INTEGER NOT NULL,
  last_id {text} NOT NULL,
  first_id {text} NOT NULL,
  head {bytes} NOT NULL,
  bodies {bytes} NOT NULL,
  PRIMARY KEY (tenant_id, day, last_id)
);
-- A mark says that a block has an entry of a user, of an endpoint, of an area of
-- endpoints, or with an error; errors, that one of these entries is an error.
CREATE TABLE audit_marks (
  tenant_id {text} NOT NULL,
  day INTEGER NOT NULL,
  kind {text} NOT NULL,
  value {text} NOT NULL,
  last_id {text} NOT NULL,
  first_id {text} NOT NULL,
  errors INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, day, kind, value, last_id)
) {clustered};
