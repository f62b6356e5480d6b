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
-- The tokens of links that reset a password.
CREATE TABLE staff_resets (
  tenant_id {text} NOT NULL,
  token_hash {text} NOT NULL,
  user_id {text} NOT NULL,
  session_epoch BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  used_at BIGINT,
  PRIMARY KEY (tenant_id, token_hash)
);
CREATE INDEX staff_resets_expiry ON staff_resets (tenant_id, expires_at);
-- The second factor of a user: the key of one-time codes, sealed, '' until one is
-- confirmed, and the one that waits to be confirmed, '' for none. last_step is the
-- time step of the last code that was accepted.
CREATE TABLE staff_factors (
  tenant_id {text} NOT NULL,
  user_id {text} NOT NULL,
  sealed {text} NOT NULL,
  pending {text} NOT NULL,
  last_step BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, user_id)
);
-- The recovery codes that are left, as hashes.
CREATE TABLE staff_recovery_codes (
  tenant_id {text} NOT NULL,
  user_id {text} NOT NULL,
  code_hash {text} NOT NULL,
  PRIMARY KEY (tenant_id, user_id, code_hash)
);
