-- Tasks that ended run again: how many attempts were made before. And why tasks that were never placed have ended.
ALTER TABLE tasks ADD COLUMN attempts_before INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task_groups ADD COLUMN rest_reason TEXT NOT NULL DEFAULT '';
