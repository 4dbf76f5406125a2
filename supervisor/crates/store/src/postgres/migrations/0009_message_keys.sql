-- A name that no other message of the session has: of a client's request that is sent twice, and of what is noted once.
ALTER TABLE talon.messages ADD COLUMN key TEXT COLLATE "C";

CREATE UNIQUE INDEX messages_by_key ON talon.messages (session, key) WHERE key IS NOT NULL;
