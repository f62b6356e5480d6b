-- endpoint: what a failed delivery needs to be run again, packed and sealed. runs.payload has
-- it of earlier versions, which cannot read what is packed. It is apart from the runs, and its
-- table is not clustered, since SQLite reads the whole of each row that it passes on the way
-- to a key of a clustered table.
CREATE TABLE failed_deliveries (
  tenant_id {text} NOT NULL,
  run_id {text} NOT NULL,
  sealed {text} NOT NULL,
  PRIMARY KEY (tenant_id, run_id)
);
