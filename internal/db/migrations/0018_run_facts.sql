-- endpoint: what a run used of its limits, as JSON, and the kind of its event;
-- '' for runs that were kept before there were these.
ALTER TABLE runs ADD COLUMN used {text} NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN event_kind {text} NOT NULL DEFAULT '';
-- Runs of an endpoint and of a target, newest first, and those of a delivery.
CREATE INDEX runs_slug ON runs (tenant_id, slug, run_id, status, took_us);
CREATE INDEX runs_target ON runs (tenant_id, target, run_id);
CREATE INDEX runs_event ON runs (tenant_id, event_id, run_id) WHERE event_id <> '';
CREATE INDEX runs_undelivered ON runs (tenant_id, event_id) WHERE event_id <> '' AND status = 'failed';
CREATE INDEX events_slug ON events (tenant_id, slug, event_id);
-- How often a delivery came again after it had been processed. A row is kept as
-- long as a run.
CREATE TABLE event_repeats (
  tenant_id {text} NOT NULL,
  event_id {text} NOT NULL,
  times BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, event_id)
) {clustered};
CREATE INDEX event_repeats_last ON event_repeats (tenant_id, last_at);
