-- Payouts. The payout table is the outbox: the row is committed before anything is sent, and a relay sends what it finds here.
-- (There is no 0005 here: leases have a file of their own, see migrations/sqlite_lease.)

CREATE TABLE payout (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    merchant        TEXT    NOT NULL,
    currency        TEXT    NOT NULL,
    run_id          INTEGER NOT NULL REFERENCES run (id),
    refusals        INTEGER NOT NULL DEFAULT 0 CHECK (refusals >= 0), -- how many payouts of this run were definitely refused before
    idempotency_key TEXT    NOT NULL UNIQUE,
    amount_minor    INTEGER NOT NULL CHECK (amount_minor > 0),
    state           TEXT    NOT NULL CHECK (state IN
        ('created', 'sending', 'accepted', 'declined', 'unknown', 'manual_review', 'paid', 'failed', 'returned')),
    created_at      TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    UNIQUE (merchant, currency, run_id, refusals)
) STRICT;
