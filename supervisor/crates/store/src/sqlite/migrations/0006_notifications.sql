-- What is to be told, to which entry of the configuration, and how far that is.
CREATE TABLE notifications (
    id          TEXT    PRIMARY KEY,
    -- The event that made it. It makes one notification an entry, however often it is reported.
    event       TEXT    NOT NULL,
    entry       TEXT    NOT NULL,
    -- Events of one group may be told in one notification.
    group_key   TEXT    NOT NULL,
    severity    TEXT    NOT NULL,
    payload     TEXT    NOT NULL,
    -- How many events it stands for.
    count       INTEGER NOT NULL,
    -- Larger after each change, so that a decision about what was read is not written over another.
    revision    INTEGER NOT NULL DEFAULT 0,
    state       TEXT    NOT NULL,
    attempt     INTEGER NOT NULL DEFAULT 0,
    due_at      INTEGER NOT NULL,
    next_at     INTEGER NOT NULL,
    -- Until when it takes in more events.
    closes_at   INTEGER NOT NULL,
    -- Who delivers it. Each claim has a larger epoch, and only the latest may write.
    holder      TEXT,
    epoch       INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    note        TEXT    NOT NULL DEFAULT '',
    UNIQUE (event, entry)
) STRICT;

CREATE INDEX notifications_open ON notifications (entry, next_at) WHERE state IN ('waiting', 'sending');
CREATE INDEX notifications_by_group ON notifications (entry, group_key, id);

-- Up to which number the events of a source are written as notifications.
CREATE TABLE notification_cursors (
    source TEXT    PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
