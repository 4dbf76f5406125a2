CREATE TABLE memories (
    id          INTEGER PRIMARY KEY,
    ulid        TEXT    NOT NULL UNIQUE,
    content     TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    workflow    TEXT,
    -- The same for workflows of the same trigger and steps.
    fingerprint BLOB    UNIQUE,
    count       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    last_used   INTEGER NOT NULL
) STRICT;

CREATE INDEX memories_by_use ON memories (last_used);

CREATE TABLE memory_tags (
    tag    TEXT    NOT NULL,
    memory INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    PRIMARY KEY (tag, memory)
) STRICT, WITHOUT ROWID;

CREATE INDEX memory_tags_by_memory ON memory_tags (memory);

CREATE VIRTUAL TABLE memory_words USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');
