CREATE TABLE talon.memories (
    id          TEXT     COLLATE "C" PRIMARY KEY,
    content     BYTEA    NOT NULL,
    source      TEXT     NOT NULL,
    tags        TEXT[]   NOT NULL,
    workflow    TEXT,
    -- The same for workflows of the same trigger and steps.
    fingerprint BYTEA    UNIQUE,
    count       BIGINT   NOT NULL,
    created_at  BIGINT   NOT NULL,
    last_used   BIGINT   NOT NULL,
    words       TSVECTOR NOT NULL
);

CREATE INDEX memories_by_use ON talon.memories (last_used);
CREATE INDEX memories_tags ON talon.memories USING gin (tags);
CREATE INDEX memories_words ON talon.memories USING gin (words);
