-- schema: an entity type that is controlled by its parent names the reference to
-- the parent. lineage is the name of the index rows, in field_values, that say
-- which ancestors have records of the type.
ALTER TABLE entities ADD COLUMN controlled_by {text} NOT NULL DEFAULT '';
ALTER TABLE entities ADD COLUMN lineage {text} NOT NULL DEFAULT '';
