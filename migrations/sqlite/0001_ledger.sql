-- The ledger itself and its chart of accounts.
--
-- SQLite's differences, once for all files: tables are STRICT, because an ordinary one keeps whatever is stored in it, also an
-- amount that overflowed into a float. UUIDs are hyphenated TEXT and instants ISO 8601 TEXT in UTC, so that they read in the
-- sqlite3 shell and sort as they are. The clock is the host's: SQLite has no other. Text compares by bytes (BINARY) by default.
-- Tables that are read by their whole key, or by the front of it, are WITHOUT ROWID: the rows lie in the order of that key.
--
-- One row says who this ledger is. Its id prefixes lease names and payout keys, so that two ledgers on one lock service or
-- one payment provider never meet. Partitions and guard are facts of the data, not of an instance: an instance configured
-- otherwise refuses to start, because two instances that cut the work differently would not exclude each other.
CREATE TABLE ledger_meta (
    only_row    INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    ledger_id   TEXT    NOT NULL,
    partitions  INTEGER NOT NULL CHECK (partitions > 0),
    guard       TEXT    NOT NULL CHECK (guard IN ('lease', 'row-lock')),
    created_at  TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

-- Accounts are created when a file is imported, in order of their code, never inside a settle transaction (where several can
-- write at once, two transactions that create the same two accounts in different order would deadlock).
-- Codes: clearing, bank, fee_revenue, suspense, rounding_difference, merchant_payable:<merchant>.
CREATE TABLE account (
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, not even after a delete
    code        TEXT    NOT NULL,
    currency    TEXT    NOT NULL CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    UNIQUE (code, currency)
) STRICT;
