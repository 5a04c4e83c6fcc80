-- What is being deleted, until it is: folders under the data folder, and jobs whose rows go in steps.
CREATE TABLE removals (folder TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE jobs_removed (job INTEGER PRIMARY KEY);
