-- A memory's vector, by which it is found by meaning: a signed byte for each number. It can be made again.
CREATE TABLE memory_vectors (
    memory INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    model  TEXT    NOT NULL,
    vector BLOB    NOT NULL
) STRICT;
