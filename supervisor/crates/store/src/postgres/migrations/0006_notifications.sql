-- What is to be told, to which entry of the configuration, and how far that is.
CREATE TABLE talon.notifications (
    id          TEXT   COLLATE "C" PRIMARY KEY,
    -- The event that made it. It makes one notification an entry, however often it is reported.
    event       TEXT   COLLATE "C" NOT NULL,
    entry       TEXT   COLLATE "C" NOT NULL,
    -- Events of one group may be told in one notification.
    group_key   TEXT   COLLATE "C" NOT NULL,
    severity    TEXT   NOT NULL,
    payload     TEXT   NOT NULL,
    -- How many events it stands for.
    count       BIGINT NOT NULL,
    -- Larger after each change, so that a decision about what was read is not written over another.
    revision    BIGINT NOT NULL DEFAULT 0,
    state       TEXT   NOT NULL,
    attempt     BIGINT NOT NULL DEFAULT 0,
    due_at      BIGINT NOT NULL,
    next_at     BIGINT NOT NULL,
    -- Until when it takes in more events.
    closes_at   BIGINT NOT NULL,
    -- Who delivers it. Each claim has a larger epoch, and only the latest may write.
    holder      TEXT,
    epoch       BIGINT NOT NULL DEFAULT 0,
    -- By the server's clock.
    lease_until BIGINT NOT NULL DEFAULT 0,
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    note        TEXT   NOT NULL DEFAULT '',
    UNIQUE (event, entry)
);

CREATE INDEX notifications_open ON talon.notifications (entry, next_at) WHERE state IN ('waiting', 'sending');
CREATE INDEX notifications_by_group ON talon.notifications (entry, group_key, id);

-- Up to which number the events of a source are written as notifications.
CREATE TABLE talon.notification_cursors (
    source TEXT   COLLATE "C" PRIMARY KEY,
    number BIGINT NOT NULL
);
