-- The audit log has left this file: it is kept by UTC day, in files of its own
-- (migrations/day). Entries of the time before the first release go.
DROP TABLE audit_log;
-- The last batch of usage that each process has added, so that one whose commit
-- was not answered is not added twice.
CREATE TABLE usage_writers (
  tenant_id {text} NOT NULL,
  writer {text} NOT NULL,
  batch BIGINT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, writer)
) {clustered};
