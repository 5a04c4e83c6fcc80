-- The lease under which nodes of other machines run an attempt, in microseconds. Attempts from before leases run
-- under none: 0.
ALTER TABLE attempts ADD COLUMN lease INTEGER NOT NULL DEFAULT 0;
