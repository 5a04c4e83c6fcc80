-- What others write on jobs to find them by: all of a job's in one text, and each by its own.
ALTER TABLE jobs ADD COLUMN tags TEXT NOT NULL DEFAULT '';
CREATE TABLE job_tags (name TEXT NOT NULL, value TEXT NOT NULL, job INTEGER NOT NULL,
  PRIMARY KEY (name, value, job)) WITHOUT ROWID;
CREATE INDEX job_tags_by_job ON job_tags (job);

-- How the job ended: that of the attempt that decided it.
ALTER TABLE jobs ADD COLUMN end_reason INTEGER;
ALTER TABLE jobs ADD COLUMN exit_code INTEGER;

-- Named places that jobs and pools are filed under, and named places for data.
CREATE TABLE folders (workspace TEXT NOT NULL, path TEXT NOT NULL, tags TEXT NOT NULL, created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL, PRIMARY KEY (workspace, path)) WITHOUT ROWID;
CREATE TABLE datastores (workspace TEXT NOT NULL, name TEXT NOT NULL, path TEXT NOT NULL, url TEXT NOT NULL,
  key TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (workspace, name)) WITHOUT ROWID;
