-- Whose database this is: the same random id is in the folder's service.mark. The number of the last turn that
-- was saved is with the other numbers, in last_ids.
-- `turn_key` proves to the service that it told a node of a turn itself (control/turn_history.h).
CREATE TABLE identity (service TEXT NOT NULL, turn_key TEXT NOT NULL);
-- Turns that are not here: somebody went on without them.
CREATE TABLE losses (at INTEGER NOT NULL, after_turn INTEGER NOT NULL, before_turn INTEGER NOT NULL);
