-- Secrets by name, sealed (base/seal.h). `user` is empty for those of the whole workspace; `earlier` are the sealed
-- values before, a line each, newest first.
CREATE TABLE secrets (workspace TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL, sealed TEXT NOT NULL,
  earlier TEXT NOT NULL, author TEXT NOT NULL, changed_at INTEGER NOT NULL,
  PRIMARY KEY (workspace, user, name)) WITHOUT ROWID;
