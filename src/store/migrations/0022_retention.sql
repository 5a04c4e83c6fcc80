-- How long a job is kept after its end (NULL: as the service keeps those of its workspace), and whether no rule deletes it.
ALTER TABLE jobs ADD COLUMN retain INTEGER;
ALTER TABLE jobs ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_by_end ON jobs (workspace, ended_at) WHERE ended_at IS NOT NULL AND pinned = 0 AND retain IS NULL;
CREATE INDEX jobs_by_own_end ON jobs (ended_at + retain) WHERE ended_at IS NOT NULL AND pinned = 0 AND retain IS NOT NULL;
