-- When each work of housekeeping is due again, in microseconds: of the nodes that share a
-- database, the first to find it due does it.
CREATE TABLE housekeeping (
  job {text} NOT NULL PRIMARY KEY,
  due_at BIGINT NOT NULL
) {clustered};
