-- When the action of a run's present attempt was called: from then on it may have done its work.
ALTER TABLE occurrences ADD COLUMN called_at INTEGER;
-- What it answered, as JSON: its text and its structured answer, both bounded.
ALTER TABLE occurrences ADD COLUMN result TEXT;
