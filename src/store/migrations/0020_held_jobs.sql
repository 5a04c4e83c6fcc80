-- Who holds a job: none of its tasks is placed until it is released. Empty: it is not held.
ALTER TABLE jobs ADD COLUMN held_by TEXT NOT NULL DEFAULT '';
