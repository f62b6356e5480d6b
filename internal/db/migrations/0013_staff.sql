-- staff: one row for each sign-in to the administration, until it ends. A token
-- is kept as its hash. Times are the database's. stage is 'full', 'code' or
-- 'enrolment'; acting_as is the user that the session's user acts as, or ''.
CREATE TABLE staff_sessions (
  tenant_id {text} NOT NULL,
  session_id {text} NOT NULL,
  token_hash {text} NOT NULL,
  user_id {text} NOT NULL,
  session_epoch BIGINT NOT NULL,
  stage {text} NOT NULL,
  acting_as {text} NOT NULL,
  started_at BIGINT NOT NULL,
  used_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  ip {text} NOT NULL,
  agent {text} NOT NULL,
  PRIMARY KEY (tenant_id, session_id)
);
CREATE UNIQUE INDEX staff_sessions_hash ON staff_sessions (tenant_id, token_hash);
CREATE INDEX staff_sessions_user ON staff_sessions (tenant_id, user_id);
CREATE INDEX staff_sessions_expiry ON staff_sessions (tenant_id, expires_at);
