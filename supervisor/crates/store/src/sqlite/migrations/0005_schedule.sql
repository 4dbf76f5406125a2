-- How far each job's planned times are decided, and whether it rests.
CREATE TABLE schedule_jobs (
    job      TEXT    PRIMARY KEY,
    timing   TEXT    NOT NULL,
    progress INTEGER NOT NULL,
    paused   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A planned time of a job. It is there before it begins, so that it runs once whatever is restarted.
CREATE TABLE occurrences (
    job         TEXT    NOT NULL,
    planned_at  INTEGER NOT NULL,
    begins_at   INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    attempt     INTEGER NOT NULL DEFAULT 0,
    -- Who runs it. Each claim has a larger epoch, and only the latest may write.
    holder      TEXT,
    epoch       INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0,
    started_at  INTEGER,
    ended_at    INTEGER,
    session     TEXT,
    turn        INTEGER,
    note        TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (job, planned_at)
) STRICT, WITHOUT ROWID;

CREATE INDEX occurrences_open ON occurrences (begins_at) WHERE state IN ('planned', 'running');
CREATE INDEX occurrences_by_time ON occurrences (planned_at, job);
