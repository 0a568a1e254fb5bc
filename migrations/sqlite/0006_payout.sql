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

-- Which payout an entry books: its cut, its payment, or its way back.
ALTER TABLE journal_entry ADD COLUMN payout_id INTEGER REFERENCES payout (id);
ALTER TABLE journal_entry ADD COLUMN payout_step TEXT CHECK (payout_step IN ('cut', 'paid', 'undone'));
CREATE UNIQUE INDEX journal_entry_payout ON journal_entry (payout_id, payout_step) WHERE payout_id IS NOT NULL;
-- One more unique key of an append-only table, so one more way for INSERT OR REPLACE to delete a row of it (see 0003).
CREATE TRIGGER journal_entry_no_replace_payout BEFORE INSERT ON journal_entry
    WHEN NEW.payout_id IS NOT NULL
        AND EXISTS (SELECT 1 FROM journal_entry WHERE payout_id = NEW.payout_id AND payout_step = NEW.payout_step)
    BEGIN SELECT RAISE(ABORT, 'journal_entry is append-only: the key is taken'); END;
