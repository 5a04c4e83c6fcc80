-- Pools that were deleted, for those who look back at the jobs that ran there: the columns of pools, the last ones kept.
CREATE TABLE deleted_pools (
  id INTEGER PRIMARY KEY, workspace TEXT NOT NULL, name TEXT NOT NULL, provisioner TEXT NOT NULL, nodes INTEGER NOT NULL,
  cores INTEGER NOT NULL, memory INTEGER NOT NULL, gpus INTEGER NOT NULL, overcommit INTEGER NOT NULL,
  lost_after INTEGER NOT NULL, created_at INTEGER NOT NULL, settings TEXT NOT NULL,
  UNIQUE (workspace, name));
