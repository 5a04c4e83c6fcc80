-- What a job may hold at a time; 0: no limit.
ALTER TABLE jobs ADD COLUMN max_parallel_tasks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN max_nodes INTEGER NOT NULL DEFAULT 0;

-- What users have used of pools: node-seconds, faded until `at`.
CREATE TABLE shares (workspace TEXT NOT NULL, pool TEXT NOT NULL, user TEXT NOT NULL, used REAL NOT NULL,
  at INTEGER NOT NULL, PRIMARY KEY (workspace, pool, user)) WITHOUT ROWID;

-- Where the time of nodes went: see wire/usage.h.
CREATE TABLE pool_usage (workspace TEXT NOT NULL, pool TEXT NOT NULL, usage TEXT NOT NULL,
  PRIMARY KEY (workspace, pool)) WITHOUT ROWID;
CREATE TABLE job_usage (job INTEGER PRIMARY KEY, usage TEXT NOT NULL);
