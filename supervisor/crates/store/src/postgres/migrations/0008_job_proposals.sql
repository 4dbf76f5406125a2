-- A job that a plugin proposes, or that the operator accepted or rejected. A decision is for one text: another text of
-- the same job is a row of its own.
CREATE TABLE talon.job_proposals (
    job         TEXT    NOT NULL,
    -- SHA-256 of the text.
    digest      TEXT    NOT NULL,
    plugin      TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    -- What is proposed, as JSON.
    proposal    TEXT    NOT NULL,
    proposed_at BIGINT NOT NULL,
    decided_at  BIGINT,
    PRIMARY KEY (job, digest)
);
