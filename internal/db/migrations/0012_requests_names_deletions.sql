-- endpoint: the runs of one request are found by its id.
CREATE INDEX runs_request ON runs (tenant_id, request_id);
