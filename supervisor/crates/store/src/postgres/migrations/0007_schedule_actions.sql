-- When the action of a run's present attempt was called: from then on it may have done its work.
ALTER TABLE talon.occurrences ADD COLUMN called_at BIGINT;
-- What it answered, as JSON: its text and its structured answer, both bounded.
ALTER TABLE talon.occurrences ADD COLUMN result TEXT;
