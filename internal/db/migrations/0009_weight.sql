-- data_bytes: at least how long data is as JSON text, as the server counted it
-- when it stored it; 0 for what was stored before it counted. Such data may hold
-- numbers that JSONB writes out as thousands of digits, so that it is looked at
-- before it is read (db.Dialect.JSONText).
ALTER TABLE records ADD COLUMN data_bytes BIGINT NOT NULL DEFAULT 0;
