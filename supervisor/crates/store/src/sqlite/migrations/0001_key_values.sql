-- The plugins' key-values. What a plugin uses is counted where it is written, in the same transaction, so that a
-- quota costs one row to check.
CREATE TABLE plugins (
    id    INTEGER PRIMARY KEY,
    name  TEXT    NOT NULL UNIQUE,
    bytes INTEGER NOT NULL DEFAULT 0,
    keys  INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Keys are bytes: their order is the same everywhere, and every text is one.
CREATE TABLE key_values (
    id     INTEGER PRIMARY KEY,
    plugin INTEGER NOT NULL REFERENCES plugins (id),
    key    BLOB    NOT NULL,
    value  BLOB    NOT NULL,
    UNIQUE (plugin, key)
) STRICT;
