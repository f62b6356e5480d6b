-- schema: a field whose words lists are searched for.
ALTER TABLE fields ADD COLUMN searchable INTEGER NOT NULL DEFAULT 0;
