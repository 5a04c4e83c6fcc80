-- Who made a token; the node whose key it is; of a join token, how many machines it still lets in (none: any number).
ALTER TABLE tokens ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN uses_left INTEGER;
