CREATE TABLE sessions (
    id            TEXT    PRIMARY KEY,
    sender        TEXT    NOT NULL,
    channel       TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    active_model  TEXT,
    overrides     TEXT    NOT NULL,
    metadata      TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    next_sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_state ON sessions (state, updated_at);

-- A message is never changed but for the mark of the summary that replaced it. A summary stands in the live view
-- where the last message stood that it replaced.
CREATE TABLE messages (
    id           INTEGER PRIMARY KEY,
    session      TEXT    NOT NULL REFERENCES sessions (id),
    sequence     INTEGER NOT NULL,
    position     INTEGER NOT NULL,
    role         TEXT    NOT NULL,
    content      TEXT    NOT NULL,
    tool_calls   TEXT,
    tool_results TEXT,
    at           INTEGER NOT NULL,
    replaced_by  INTEGER,
    UNIQUE (session, sequence)
) STRICT;

CREATE INDEX messages_live ON messages (session, position, sequence) WHERE replaced_by IS NULL;

-- Words are cut and folded before they come here. Only the index is kept, not the words a second time.
CREATE VIRTUAL TABLE message_words USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');
