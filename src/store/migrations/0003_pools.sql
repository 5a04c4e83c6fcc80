-- What pools and nodes have beyond their columns, as JSON: see wire/pool.h. `nodes` of a pool counts its dedicated ones.
ALTER TABLE pools ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE nodes ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE jobs ADD COLUMN evictions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN nodes_lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN evictions INTEGER NOT NULL DEFAULT 0;

CREATE TABLE pool_history (workspace TEXT NOT NULL, pool TEXT NOT NULL, id INTEGER NOT NULL, moment TEXT NOT NULL,
  PRIMARY KEY (workspace, pool, id)) WITHOUT ROWID;
CREATE TABLE pool_samples (workspace TEXT NOT NULL, pool TEXT NOT NULL, time INTEGER NOT NULL, every INTEGER NOT NULL,
  count INTEGER NOT NULL, sample TEXT NOT NULL,
  PRIMARY KEY (workspace, pool, time)) WITHOUT ROWID;
