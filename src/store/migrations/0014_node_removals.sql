-- Folders of deleted jobs that a node with storage of its own has not yet said to have removed.
CREATE TABLE node_removals (node INTEGER NOT NULL, folder TEXT NOT NULL, PRIMARY KEY (node, folder)) WITHOUT ROWID;
