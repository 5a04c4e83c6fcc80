-- The user who made a datastore; those from before have none, and are changed by admins.
ALTER TABLE datastores ADD COLUMN owner TEXT NOT NULL DEFAULT '';
