-- A run is the time from one start of the service to the next: it saved the turns from `first_turn` on, to the
-- first one of the next run. So a turn that a node was told of is known by its number and its run.
CREATE TABLE runs (number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, first_turn INTEGER NOT NULL);
