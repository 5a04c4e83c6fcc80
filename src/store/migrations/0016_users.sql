-- Users and service accounts. `password` is an Argon2id hash, `code` the SHA-256 of a code that signs in once until `code_until`;
-- '' and NULL: there is none.
CREATE TABLE users (
  name TEXT PRIMARY KEY,
  service INTEGER NOT NULL,
  disabled INTEGER NOT NULL,
  password TEXT NOT NULL,
  code TEXT NOT NULL,
  code_until INTEGER,
  author TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
-- What a user is in a workspace; a workspace is there once it has a member.
CREATE TABLE members (
  workspace TEXT NOT NULL,
  user TEXT NOT NULL,
  role TEXT NOT NULL,
  PRIMARY KEY (workspace, user)
) WITHOUT ROWID;
