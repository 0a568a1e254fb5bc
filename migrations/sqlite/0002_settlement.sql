-- Files, runs, batches and their lines.

CREATE TABLE import_file (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    sha256      BLOB    NOT NULL CHECK (length(sha256) = 32), -- of the decompressed bytes
    name        TEXT    NOT NULL,
    profile     TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    bytes       INTEGER NOT NULL,
    batches     INTEGER NOT NULL,
    items       INTEGER NOT NULL,
    imported_by TEXT    NOT NULL,
    imported_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

-- The record of an occurrence, not a gate: a batch settles once because of its own state, whoever opened the run.
-- Totals of a run are read from the ledger, so there is nothing here that could disagree with it. A run that should have
-- happened and did not is a row too: state 'missed'.
CREATE TABLE run (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule      TEXT    NOT NULL,
    business_date TEXT    NOT NULL,
    slot          TEXT    NOT NULL, -- local wall time
    state         TEXT    NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'missed')),
    scheduled_for TEXT,
    -- the instants of the business date, half-open, as they were when the run was planned: later rules of its zone change nothing
    covers_from   TEXT,
    covers_until  TEXT,
    -- sources whose batches are due with it, sorted, as a JSON array; NULL: all
    sources       TEXT,
    -- how a wall time that does not exist, or exists twice, was dealt with
    note          TEXT,
    -- a missed row may stand for many slots: the newest is its key (`until HH:MM`, which no occurrence has), the oldest is here;
    -- it stays where a missed run is opened after all
    missed_slots  INTEGER NOT NULL DEFAULT 0 CHECK ((missed_slots > 0) = (state = 'missed')),
    missed_since  TEXT,
    opened_by     TEXT    NOT NULL,
    opened_at     TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    -- when somebody first found nothing due any more; a late batch may still be settled under it
    finished_at   TEXT,
    CHECK (covers_from < covers_until),
    UNIQUE (schedule, business_date, slot)
) STRICT;
-- What is due: the newest open run of each set of sources.
CREATE INDEX run_newest ON run (sources, business_date DESC, id DESC) WHERE state = 'open';
-- When each schedule ran last, and what it has missed.
CREATE INDEX run_last ON run (schedule, scheduled_for) WHERE state = 'open' AND scheduled_for IS NOT NULL;
CREATE INDEX run_missed ON run (schedule, missed_slots) WHERE state = 'missed';
-- Whose end nobody has noted yet: a handful, however long the history.
CREATE INDEX run_unfinished ON run (sources) WHERE state = 'open' AND finished_at IS NULL;

-- One batch of one source. Fence columns are the history of who wrote it, never what a write is compared with: that is
-- unit_fence. They are NOT NULL, because NULL compares as unknown and would let a write through or block it for ever.
CREATE TABLE settlement_batch (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    source            TEXT    NOT NULL,
    external_batch_id TEXT    NOT NULL,
    revision          INTEGER NOT NULL DEFAULT 1 CHECK (revision > 0),
    import_file_id    INTEGER NOT NULL REFERENCES import_file (id),
    first_line        INTEGER NOT NULL,
    digest            BLOB    NOT NULL CHECK (length(digest) = 32),
    business_date     TEXT    NOT NULL,
    fee_mode          TEXT    NOT NULL CHECK (fee_mode IN ('withheld', 'charged')),
    unit              INTEGER NOT NULL CHECK (unit >= 0),
    state             TEXT    NOT NULL CHECK (state IN
        ('received', 'pending', 'settling', 'settled', 'broken', 'quarantined', 'cancelled', 'reversed')),
    items             INTEGER NOT NULL,
    break_reason      TEXT,
    attempts          INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    retry_at          TEXT,
    fence_generation  INTEGER NOT NULL DEFAULT 0,
    fence_token       INTEGER NOT NULL DEFAULT 0,
    holder            TEXT    NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    run_id            INTEGER REFERENCES run (id),
    claimed_at        TEXT,
    settled_at        TEXT,
    UNIQUE (source, external_batch_id, revision)
) STRICT;
-- A corrected batch is a new revision; only one of them may hold the item identities.
CREATE UNIQUE INDEX settlement_batch_one_live ON settlement_batch (source, external_batch_id)
    WHERE state NOT IN ('cancelled', 'reversed');
-- What a claim looks for. Settled rows leave the index, so it stays as small as the work that is left. SQLite uses a partial
-- index only for a query that repeats its condition word for word.
CREATE INDEX settlement_batch_due ON settlement_batch (unit, attempts, id) WHERE state IN ('pending', 'settling');
-- The same for the row-lock guard, which knows no units.
CREATE INDEX settlement_batch_pending ON settlement_batch (attempts, id) WHERE state = 'pending';
-- What waits for a person: looked at by every scrape of every instance.
CREATE INDEX settlement_batch_waiting ON settlement_batch (state) WHERE state IN ('broken', 'quarantined');
-- What a run has settled, for its history.
CREATE INDEX settlement_batch_run ON settlement_batch (run_id) WHERE state = 'settled';

-- One currency of a batch: what was counted, what the source declared and binds, and what settles besides the lines.
CREATE TABLE batch_total (
    batch_id                  INTEGER NOT NULL REFERENCES settlement_batch (id),
    currency                  TEXT    NOT NULL,
    items                     INTEGER NOT NULL,
    debit_minor               INTEGER NOT NULL,
    credit_minor              INTEGER NOT NULL,
    gross_minor               INTEGER NOT NULL,
    fee_minor                 INTEGER NOT NULL,
    net_minor                 INTEGER NOT NULL,
    remittance_minor          INTEGER NOT NULL,
    declared_remittance_minor INTEGER NOT NULL,
    rounding_minor            INTEGER NOT NULL,
    difference_minor          INTEGER NOT NULL,
    accepted_minor            INTEGER NOT NULL DEFAULT 0,
    declared_items            INTEGER,
    declared_debit_minor      INTEGER,
    declared_credit_minor     INTEGER,
    declared_gross_minor      INTEGER,
    declared_fee_minor        INTEGER,
    declared_net_minor        INTEGER,
    tolerance_minor           INTEGER NOT NULL,
    PRIMARY KEY (batch_id, currency)
) STRICT, WITHOUT ROWID;

-- The lines, immutable. net = gross - fee is a rule of the table, not of a program.
CREATE TABLE batch_item (
    batch_id       INTEGER NOT NULL REFERENCES settlement_batch (id),
    line_no        INTEGER NOT NULL,
    kind           TEXT    NOT NULL,
    merchant       TEXT    NOT NULL CHECK (merchant <> ''),
    currency       TEXT    NOT NULL,
    gross_minor    INTEGER NOT NULL,
    fee_minor      INTEGER NOT NULL,
    net_minor      INTEGER NOT NULL CHECK (net_minor = gross_minor - fee_minor),
    residual_micro INTEGER NOT NULL,
    dedupe_key     TEXT    NOT NULL,
    PRIMARY KEY (batch_id, line_no)
) STRICT, WITHOUT ROWID;

-- Identity of items across batches: the same transaction in two live batches is one too many. Rows leave only when their
-- batch is cancelled or reversed, in that transaction.
CREATE TABLE settled_item (
    source     TEXT    NOT NULL,
    dedupe_key TEXT    NOT NULL,
    batch_id   INTEGER NOT NULL,
    line_no    INTEGER NOT NULL,
    PRIMARY KEY (source, dedupe_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX settled_item_batch ON settled_item (batch_id);
