-- Until when a token is good (NULL: until it is revoked), when it was last used, what it is for, the one pool its jobs go to
-- ('': any), and the user whose it is ('': nobody the service knows). Tokens from before keep what they could.
ALTER TABLE tokens ADD COLUMN expires_at INTEGER;
ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;
ALTER TABLE tokens ADD COLUMN scope TEXT NOT NULL DEFAULT 'admin';
ALTER TABLE tokens ADD COLUMN pool TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN user TEXT NOT NULL DEFAULT '';
