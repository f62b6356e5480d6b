-- outbox: mails that wait to be sent. sealed is the whole message, encrypted;
-- nothing of it is in any other column. next_at is when it may be looked at
-- again: its next try, or the end of the lease of who is sending it.
CREATE TABLE outbox (
  tenant_id {text} NOT NULL,
  mail_id {text} NOT NULL,
  sealed {text} NOT NULL,
  attempts INTEGER NOT NULL,
  next_at BIGINT NOT NULL,
  leased_until BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  last_error {text} NOT NULL,
  PRIMARY KEY (tenant_id, mail_id)
);
CREATE INDEX outbox_next ON outbox (tenant_id, next_at);
