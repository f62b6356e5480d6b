-- The audit log is kept by UTC day, a partition each, which is made when it is
-- first needed and dropped whole. Entries of the time before the first release
-- go. The tables are those of migrations/day, which has a word on each column.
DROP TABLE audit_log;
CREATE TABLE audit_blocks (
  tenant_id {text} NOT NULL,
  day INTEGER NOT NULL,
  last_id {text} NOT NULL,
  first_id {text} NOT NULL,
  head {bytes} NOT NULL,
  bodies {bytes} NOT NULL,
  PRIMARY KEY (tenant_id, day, last_id)
) PARTITION BY LIST (day);
ALTER TABLE audit_blocks ALTER COLUMN head SET STORAGE EXTERNAL, ALTER COLUMN bodies SET STORAGE EXTERNAL;
CREATE TABLE audit_marks (
  tenant_id {text} NOT NULL,
  day INTEGER NOT NULL,
  kind {text} NOT NULL,
  value {text} NOT NULL,
  last_id {text} NOT NULL,
  first_id {text} NOT NULL,
  errors INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, day, kind, value, last_id)
) PARTITION BY LIST (day);
-- The last batch of usage that each process has added, so that one whose commit
-- was not answered is not added twice.
CREATE TABLE usage_writers (
  tenant_id {text} NOT NULL,
  writer {text} NOT NULL,
  batch BIGINT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, writer)
);
