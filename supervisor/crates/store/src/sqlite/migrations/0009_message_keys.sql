-- A name that no other message of the session has: of a client's request that is sent twice, and of what is noted once.
ALTER TABLE messages ADD COLUMN key TEXT;

CREATE UNIQUE INDEX messages_by_key ON messages (session, key) WHERE key IS NOT NULL;
