-- What the OpenID Connect provider calls a user, for ever ('': the user signs in with a password or a code).
ALTER TABLE users ADD COLUMN subject TEXT NOT NULL DEFAULT '';
