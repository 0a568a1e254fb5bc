-- Leases of a ledger that lives in an SQLite file. They have a file of their own, <ledger file>-lease: a renewal must not
-- wait for a settle transaction, and SQLite lets one writer into a file.
CREATE TABLE lease (
    -- "<ledger id>/unit/<n>"; BINARY is SQLite's default collation, said here because two names that compare equal share a lease
    name          TEXT    NOT NULL COLLATE BINARY PRIMARY KEY,
    -- the process start that was granted it, as a hyphenated UUID: this file is small and people read it in the sqlite3 shell
    holder        TEXT    NOT NULL CHECK (length(holder) = 36),
    -- the grant: every renewal and release repeats it, so that nobody touches a grant that is not his own
    nonce         TEXT    NOT NULL CHECK (length(nonce) = 36),
    -- milliseconds since 1970, by the host's clock, read by SQLite inside the statement. Nothing is checked between the two: the
    -- host's clock can be set back between a grant and its renewal.
    acquired_at_ms INTEGER NOT NULL,
    -- from this instant on anyone may take it; the row stays until somebody does, or its holder gives it back
    expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
