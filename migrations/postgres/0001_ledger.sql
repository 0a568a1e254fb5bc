-- The ledger itself and its chart of accounts.
--
-- One row says who this ledger is. Its id prefixes lease names and payout keys, so that two ledgers on one lock service or
-- one payment provider never meet. Partitions and guard are facts of the data, not of an instance: an instance configured
-- otherwise refuses to start, because two instances that cut the work differently would not exclude each other.
CREATE TABLE ledger_meta (
    only_row    boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    ledger_id   uuid        NOT NULL,
    partitions  integer     NOT NULL CHECK (partitions > 0),
    guard       text        NOT NULL CHECK (guard IN ('lease', 'row-lock', 'advisory-xact')),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Accounts are created when a file is imported, in order of their code, never inside a settle transaction: two transactions
-- that create the same two accounts in different order would deadlock.
-- Codes: clearing, bank, fee_revenue, suspense, rounding_difference, merchant_payable:<merchant>.
CREATE TABLE account (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    code        text        COLLATE "C" NOT NULL,
    currency    text        COLLATE "C" NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    UNIQUE (code, currency)
);
