-- Times are microseconds since 1970, states the numbers of domain/state.h, sizes bytes.

CREATE TABLE last_ids (kind TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE pools (
  workspace TEXT NOT NULL, name TEXT NOT NULL, provisioner TEXT NOT NULL, nodes INTEGER NOT NULL,
  cores INTEGER NOT NULL, memory INTEGER NOT NULL, gpus INTEGER NOT NULL, overcommit INTEGER NOT NULL,
  lost_after INTEGER NOT NULL, created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace, name)) WITHOUT ROWID;

CREATE TABLE nodes (
  id INTEGER PRIMARY KEY, workspace TEXT NOT NULL, pool TEXT NOT NULL, name TEXT NOT NULL, address TEXT NOT NULL,
  instance TEXT NOT NULL, host TEXT NOT NULL, local INTEGER NOT NULL, shares_storage INTEGER NOT NULL,
  cores INTEGER NOT NULL, memory INTEGER NOT NULL, gpus INTEGER NOT NULL, drained INTEGER NOT NULL,
  state INTEGER NOT NULL, reason TEXT NOT NULL, notes TEXT NOT NULL, created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL);

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY, workspace TEXT NOT NULL, name TEXT NOT NULL, pool TEXT NOT NULL, priority INTEGER NOT NULL,
  state INTEGER NOT NULL, reason TEXT NOT NULL, submitted_by TEXT NOT NULL, source TEXT NOT NULL,
  submitted_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
  waiting INTEGER NOT NULL, queued INTEGER NOT NULL, active INTEGER NOT NULL, succeeded INTEGER NOT NULL,
  failed INTEGER NOT NULL, cancelled INTEGER NOT NULL, skipped INTEGER NOT NULL,
  idempotency_key TEXT, environment TEXT NOT NULL);
CREATE INDEX jobs_live ON jobs (id) WHERE state < 3;
CREATE INDEX jobs_by_name ON jobs (workspace, name);
CREATE UNIQUE INDEX jobs_by_key ON jobs (workspace, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- One row for each entry of a job's list. Its progress is kept only once it differs from the beginning.
CREATE TABLE task_specs (job INTEGER NOT NULL, grp INTEGER NOT NULL, name TEXT NOT NULL, spec TEXT NOT NULL,
  PRIMARY KEY (job, grp)) WITHOUT ROWID;
CREATE TABLE task_groups (
  job INTEGER NOT NULL, grp INTEGER NOT NULL, next INTEGER NOT NULL, rest INTEGER NOT NULL,
  waiting INTEGER NOT NULL, queued INTEGER NOT NULL, active INTEGER NOT NULL, succeeded INTEGER NOT NULL,
  failed INTEGER NOT NULL, cancelled INTEGER NOT NULL, skipped INTEGER NOT NULL,
  PRIMARY KEY (job, grp)) WITHOUT ROWID;

-- Tasks that were placed at least once; the others are a range in task_groups.
CREATE TABLE tasks (
  job INTEGER NOT NULL, grp INTEGER NOT NULL, idx INTEGER NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL,
  attempts INTEGER NOT NULL, retries_used INTEGER NOT NULL, not_before INTEGER, exit_code INTEGER, signal INTEGER,
  reason TEXT NOT NULL,
  PRIMARY KEY (job, grp, idx)) WITHOUT ROWID;
CREATE INDEX tasks_live ON tasks (job, grp, idx) WHERE state < 5;
CREATE INDEX tasks_failed ON tasks (job, grp, idx) WHERE state > 5;

CREATE TABLE attempts (
  job INTEGER NOT NULL, grp INTEGER NOT NULL, idx INTEGER NOT NULL, attempt INTEGER NOT NULL, nodes TEXT NOT NULL,
  placed_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER, end_reason INTEGER, exit_code INTEGER,
  signal INTEGER, rank INTEGER, detail TEXT NOT NULL, memory_peak INTEGER NOT NULL, cpu_time INTEGER NOT NULL,
  PRIMARY KEY (job, grp, idx, attempt)) WITHOUT ROWID;

CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, workspace TEXT NOT NULL, role INTEGER NOT NULL,
  hash TEXT NOT NULL, created_at INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE events (
  id INTEGER PRIMARY KEY, time INTEGER NOT NULL, workspace TEXT NOT NULL, kind TEXT NOT NULL, job INTEGER,
  task TEXT NOT NULL, attempt INTEGER, node TEXT NOT NULL, pool TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX events_by_job ON events (job, id) WHERE job IS NOT NULL;

