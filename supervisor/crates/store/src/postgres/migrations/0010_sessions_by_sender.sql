-- How many sessions a sender has is counted before it gets another one.
CREATE INDEX sessions_by_sender ON talon.sessions (sender);
