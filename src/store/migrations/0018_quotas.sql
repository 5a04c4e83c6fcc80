-- What a user, or a workspace as a whole (an empty user), may have at a time; NULL: no limit. Nodes in millionths, cores
-- in thousandths. The user '*' is each that has no limit of that kind.
CREATE TABLE quotas (workspace TEXT NOT NULL, user TEXT NOT NULL, jobs INTEGER, tasks INTEGER, nodes INTEGER,
  cores INTEGER, gpus INTEGER, requests INTEGER, author TEXT NOT NULL, changed_at INTEGER NOT NULL,
  PRIMARY KEY (workspace, user)) WITHOUT ROWID;
