-- External Identity.

-- user: session_epoch grows with everything that ends all sessions of a user
-- (deactivation, a new password); a refresh token or reset token holds while
-- the epoch is the one it was made at. pending is 1 from registration until
-- the account is activated, or an operator decides over it.
ALTER TABLE users ADD COLUMN session_epoch BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN pending INTEGER NOT NULL DEFAULT 0;

-- identity: one row for each login, and one for each refresh token that came of
-- it. Times are the database's. A chain is what serializes its tokens: whoever
-- changes one holds the chain's row.
CREATE TABLE refresh_chains (
  tenant_id {text} NOT NULL,
  chain_id {text} NOT NULL,
  user_id {text} NOT NULL,
  session_epoch BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  ended_at BIGINT,
  end_reason {text} NOT NULL,
  PRIMARY KEY (tenant_id, chain_id)
);
CREATE INDEX refresh_chains_user ON refresh_chains (tenant_id, user_id);
CREATE INDEX refresh_chains_expiry ON refresh_chains (tenant_id, expires_at);
-- parent_token_id is null for the token of the login.
CREATE TABLE refresh_tokens (
  tenant_id {text} NOT NULL,
  token_id {text} NOT NULL,
  parent_token_id {text},
  chain_id {text} NOT NULL,
  user_id {text} NOT NULL,
  token_hash {text} NOT NULL,
  issued_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  rotated_at BIGINT,
  revoked_at BIGINT,
  PRIMARY KEY (tenant_id, token_id)
);
CREATE UNIQUE INDEX refresh_tokens_hash ON refresh_tokens (tenant_id, token_hash);
-- A token has one successor at most, whatever goes wrong above.
CREATE UNIQUE INDEX refresh_tokens_parent ON refresh_tokens (tenant_id, parent_token_id);
CREATE INDEX refresh_tokens_chain ON refresh_tokens (tenant_id, chain_id);
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (tenant_id, expires_at);
-- purpose is 'verify', 'activate' or 'reset'.
CREATE TABLE one_time_tokens (
  tenant_id {text} NOT NULL,
  token_hash {text} NOT NULL,
  purpose {text} NOT NULL,
  user_id {text} NOT NULL,
  session_epoch BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  used_at BIGINT,
  PRIMARY KEY (tenant_id, token_hash)
);
CREATE INDEX one_time_tokens_expiry ON one_time_tokens (tenant_id, expires_at);
-- sealed is the signing key under the master key; the key without retired_at signs.
CREATE TABLE jwt_keys (
  tenant_id {text} NOT NULL,
  kid {text} NOT NULL,
  sealed {text} NOT NULL,
  created_at BIGINT NOT NULL,
  retired_at BIGINT,
  PRIMARY KEY (tenant_id, kid)
);
CREATE UNIQUE INDEX jwt_keys_current ON jwt_keys (tenant_id) WHERE retired_at IS NULL;
