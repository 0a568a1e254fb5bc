-- Posted facts. They are only ever added: a mistake is taken back by a reversing entry, never by changing one.

-- entry_key is made of business facts, so that a repeated settlement meets its first entry (settle:<batch>:<revision>:<currency>).
-- The fence it was written under is kept, so that the books themselves show that no superseded holder wrote.
CREATE TABLE journal_entry (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    entry_key         TEXT    NOT NULL UNIQUE,
    kind              TEXT    NOT NULL CHECK (kind IN ('settle', 'reverse', 'payout')),
    batch_id          INTEGER REFERENCES settlement_batch (id),
    currency          TEXT    NOT NULL,
    unit              INTEGER NOT NULL,
    fence_generation  INTEGER NOT NULL DEFAULT 0,
    fence_token       INTEGER NOT NULL DEFAULT 0,
    holder            TEXT    NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    run_id            INTEGER REFERENCES run (id),
    reverses_entry_id INTEGER UNIQUE REFERENCES journal_entry (id),
    -- which payout it books: its cut, its payment, or its way back (0006 makes the table; SQLite looks for it when a row goes in)
    payout_id         INTEGER REFERENCES payout (id),
    payout_step       TEXT    CHECK (payout_step IN ('cut', 'paid', 'undone')),
    posted_at         TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    -- an entry belongs to what its kind says: nothing is posted for nothing
    CONSTRAINT journal_entry_belongs CHECK (
        (kind = 'settle' AND batch_id IS NOT NULL AND reverses_entry_id IS NULL AND payout_id IS NULL)
        OR (kind = 'reverse' AND batch_id IS NOT NULL AND reverses_entry_id IS NOT NULL AND payout_id IS NULL)
        OR (kind = 'payout' AND payout_id IS NOT NULL AND batch_id IS NULL)),
    CONSTRAINT journal_entry_step CHECK ((payout_id IS NULL) = (payout_step IS NULL))
) STRICT;
CREATE INDEX journal_entry_batch ON journal_entry (batch_id);
CREATE UNIQUE INDEX journal_entry_payout ON journal_entry (payout_id, payout_step) WHERE payout_id IS NOT NULL;

-- One row per (entry, account, side): summed over the lines of the batch, never netted across sides.
CREATE TABLE posting (
    entry_id     INTEGER NOT NULL REFERENCES journal_entry (id),
    account_id   INTEGER NOT NULL REFERENCES account (id),
    side         TEXT    NOT NULL CHECK (side IN ('D', 'C')),
    amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),
    PRIMARY KEY (entry_id, account_id, side)
) STRICT, WITHOUT ROWID;

-- Cumulative debits and credits, striped by unit as on the other engines. Here the stripes save nothing (there is one writer),
-- but a ledger looks the same everywhere. A balance is the sum of its stripes. Unit -1 is the stripe of operator postings.
CREATE TABLE account_balance (
    account_id   INTEGER NOT NULL REFERENCES account (id),
    unit         INTEGER NOT NULL,
    debit_minor  INTEGER NOT NULL CHECK (debit_minor >= 0),
    credit_minor INTEGER NOT NULL CHECK (credit_minor >= 0),
    PRIMARY KEY (account_id, unit)
) STRICT, WITHOUT ROWID;

-- There is no TRUNCATE, but there is INSERT OR REPLACE: it deletes the row in its way, and fires delete triggers only where
-- recursive_triggers is on. This program turns it on; the next one may not. So an insert that meets an existing key, by any
-- unique column, is refused before it is resolved. (A key that SQLite will give is -1 in here.)
CREATE TRIGGER journal_entry_no_update BEFORE UPDATE ON journal_entry
    BEGIN SELECT RAISE(ABORT, 'journal_entry is append-only: UPDATE refused'); END;
CREATE TRIGGER journal_entry_no_delete BEFORE DELETE ON journal_entry
    BEGIN SELECT RAISE(ABORT, 'journal_entry is append-only: DELETE refused'); END;
CREATE TRIGGER journal_entry_no_replace BEFORE INSERT ON journal_entry
    WHEN EXISTS (SELECT 1 FROM journal_entry WHERE id = NEW.id)
        OR EXISTS (SELECT 1 FROM journal_entry WHERE entry_key = NEW.entry_key)
        OR EXISTS (SELECT 1 FROM journal_entry WHERE reverses_entry_id = NEW.reverses_entry_id)
        OR EXISTS (SELECT 1 FROM journal_entry WHERE payout_id = NEW.payout_id AND payout_step = NEW.payout_step)
    BEGIN SELECT RAISE(ABORT, 'journal_entry is append-only: the key is taken'); END;

CREATE TRIGGER posting_no_update BEFORE UPDATE ON posting
    BEGIN SELECT RAISE(ABORT, 'posting is append-only: UPDATE refused'); END;
CREATE TRIGGER posting_no_delete BEFORE DELETE ON posting
    BEGIN SELECT RAISE(ABORT, 'posting is append-only: DELETE refused'); END;
CREATE TRIGGER posting_no_replace BEFORE INSERT ON posting
    WHEN EXISTS (SELECT 1 FROM posting WHERE entry_id = NEW.entry_id AND account_id = NEW.account_id AND side = NEW.side)
    BEGIN SELECT RAISE(ABORT, 'posting is append-only: the key is taken'); END;

CREATE TRIGGER batch_item_no_update BEFORE UPDATE ON batch_item
    BEGIN SELECT RAISE(ABORT, 'batch_item is append-only: UPDATE refused'); END;
CREATE TRIGGER batch_item_no_delete BEFORE DELETE ON batch_item
    BEGIN SELECT RAISE(ABORT, 'batch_item is append-only: DELETE refused'); END;
CREATE TRIGGER batch_item_no_replace BEFORE INSERT ON batch_item
    WHEN EXISTS (SELECT 1 FROM batch_item WHERE batch_id = NEW.batch_id AND line_no = NEW.line_no)
    BEGIN SELECT RAISE(ABORT, 'batch_item is append-only: the key is taken'); END;
