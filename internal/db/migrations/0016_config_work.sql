-- admin: a change of configuration that an administrator asked for and that takes long,
-- how far it has come and how it ended. state is running, done, failed or stopped; answer
-- is JSON: what was done, or the error. It decides nothing, and is kept for a day.
CREATE TABLE config_work (
  tenant_id {text} NOT NULL,
  work_id {text} NOT NULL,
  user_id {text} NOT NULL,
  actor {text} NOT NULL,
  state {text} NOT NULL,
  entity {text} NOT NULL,
  done BIGINT NOT NULL,
  total BIGINT NOT NULL,
  answer {text} NOT NULL,
  started_at BIGINT NOT NULL,
  beat_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, work_id)
) {clustered};
