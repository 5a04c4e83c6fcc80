-- What each thing takes of the disk, in bytes: a job's folder, code that jobs of a user came with, a datastore (of no
-- user). Only in workspaces where disk has a limit.
ALTER TABLE quotas ADD COLUMN disk INTEGER;
CREATE TABLE disk_use (workspace TEXT NOT NULL, user TEXT NOT NULL, thing TEXT NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (workspace, user, thing)) WITHOUT ROWID;
