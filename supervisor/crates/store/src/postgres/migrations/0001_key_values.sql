-- The plugins' key-values. What a plugin uses is counted where it is written, in the same transaction; its row is
-- locked meanwhile, so two writers of one plugin take turns.
CREATE TABLE talon.plugins (
    id    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name  TEXT   COLLATE "C" NOT NULL UNIQUE,
    bytes BIGINT NOT NULL DEFAULT 0,
    keys  BIGINT NOT NULL DEFAULT 0
);

-- Keys are bytes: their order is the same everywhere, and every text is one, also with a NUL in it.
CREATE TABLE talon.key_values (
    plugin BIGINT NOT NULL REFERENCES talon.plugins (id) ON DELETE CASCADE,
    key    BYTEA  NOT NULL,
    value  BYTEA  NOT NULL,
    PRIMARY KEY (plugin, key)
);
