-- How far each job's planned times are decided, and whether it rests.
CREATE TABLE talon.schedule_jobs (
    job      TEXT    COLLATE "C" PRIMARY KEY,
    timing   TEXT    NOT NULL,
    progress BIGINT  NOT NULL,
    paused   BOOLEAN NOT NULL
);

-- A planned time of a job. It is there before it begins, so that it runs once whatever is restarted, and however many
-- supervisors share the database.
CREATE TABLE talon.occurrences (
    job         TEXT   COLLATE "C" NOT NULL,
    planned_at  BIGINT NOT NULL,
    begins_at   BIGINT NOT NULL,
    kind        TEXT   NOT NULL,
    state       TEXT   NOT NULL,
    attempt     BIGINT NOT NULL DEFAULT 0,
    -- Who runs it. Each claim has a larger epoch, and only the latest may write.
    holder      TEXT,
    epoch       BIGINT NOT NULL DEFAULT 0,
    -- By the server's clock.
    lease_until BIGINT NOT NULL DEFAULT 0,
    started_at  BIGINT,
    ended_at    BIGINT,
    session     TEXT,
    turn        BIGINT,
    note        TEXT   NOT NULL DEFAULT '',
    PRIMARY KEY (job, planned_at)
);

CREATE INDEX occurrences_open ON talon.occurrences (begins_at) WHERE state IN ('planned', 'running');
CREATE INDEX occurrences_by_time ON talon.occurrences (planned_at, job);
