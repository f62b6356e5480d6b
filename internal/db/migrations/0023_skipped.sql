-- endpoint: how many nodes of a flow could not read what they needed, and the first of
-- them with what that was.
ALTER TABLE runs ADD COLUMN skipped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN skipped_because {text} NOT NULL DEFAULT '';
