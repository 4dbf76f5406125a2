CREATE TABLE talon.sessions (
    id            TEXT   COLLATE "C" PRIMARY KEY,
    sender        TEXT   NOT NULL,
    channel       TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    active_model  TEXT,
    -- As texts: JSON of PostgreSQL's own kind cannot hold a NUL.
    overrides     TEXT   NOT NULL,
    metadata      TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    next_sequence BIGINT NOT NULL
);

CREATE INDEX sessions_by_state ON talon.sessions (state, updated_at);

-- A message is never changed but for the mark of the summary that replaced it. A summary stands in the live view
-- where the last message stood that it replaced.
CREATE TABLE talon.messages (
    id           BIGINT   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session      TEXT     COLLATE "C" NOT NULL REFERENCES talon.sessions (id) ON DELETE CASCADE,
    sequence     BIGINT   NOT NULL,
    position     BIGINT   NOT NULL,
    role         TEXT     NOT NULL,
    -- As bytes: a text cannot hold a NUL, and what was said is kept as it was said.
    content      BYTEA    NOT NULL,
    tool_calls   TEXT,
    tool_results TEXT,
    at           BIGINT   NOT NULL,
    replaced_by  BIGINT,
    -- Words are cut and folded before they come here.
    words        TSVECTOR NOT NULL,
    UNIQUE (session, sequence)
);

CREATE INDEX messages_live ON talon.messages (session, position, sequence) WHERE replaced_by IS NULL;
CREATE INDEX messages_words ON talon.messages USING gin (words);
