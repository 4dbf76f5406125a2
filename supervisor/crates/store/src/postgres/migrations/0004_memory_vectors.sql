-- A memory's vector, by which it is found by meaning: a signed byte for each number. It can be made again. Where the
-- extension pgvector is there, the store adds a column of its type.
CREATE TABLE talon.memory_vectors (
    memory TEXT  COLLATE "C" PRIMARY KEY REFERENCES talon.memories (id) ON DELETE CASCADE,
    model  TEXT  NOT NULL,
    vector BYTEA NOT NULL
);
