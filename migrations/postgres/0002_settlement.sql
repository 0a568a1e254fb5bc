-- Files, runs, batches and their lines.

CREATE TABLE import_file (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sha256      bytea       NOT NULL CHECK (length(sha256) = 32), -- of the decompressed bytes
    name        text        NOT NULL,
    profile     text        NOT NULL,
    source      text        COLLATE "C" NOT NULL,
    bytes       bigint      NOT NULL,
    batches     integer     NOT NULL,
    items       bigint      NOT NULL,
    imported_by text        NOT NULL,
    imported_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The record of an occurrence, not a gate: a batch settles once because of its own state, whoever opened the run.
-- Totals of a run are read from the ledger, so there is nothing here that could disagree with it. A run that should have
-- happened and did not is a row too: state 'missed'.
CREATE TABLE run (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule      text        COLLATE "C" NOT NULL,
    business_date date        NOT NULL,
    slot          text        COLLATE "C" NOT NULL, -- local wall time
    state         text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'missed')),
    scheduled_for timestamptz,
    -- the instants of the business date, half-open, as they were when the run was planned: later rules of its zone change nothing
    covers_from   timestamptz,
    covers_until  timestamptz,
    -- sources whose batches are due with it, sorted; NULL: all
    sources       text[]      COLLATE "C",
    -- how a wall time that does not exist, or exists twice, was dealt with
    note          text,
    -- a missed row may stand for many slots: the newest is its key (`until HH:MM`, which no occurrence has), the oldest is here;
    -- it stays where a missed run is opened after all
    missed_slots  integer     NOT NULL DEFAULT 0 CHECK ((missed_slots > 0) = (state = 'missed')),
    missed_since  timestamptz,
    opened_by     uuid        NOT NULL,
    opened_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- when somebody first found nothing due any more; a late batch may still be settled under it
    finished_at   timestamptz,
    CHECK (covers_from < covers_until),
    UNIQUE (schedule, business_date, slot)
);
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
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source            text        COLLATE "C" NOT NULL,
    external_batch_id text        COLLATE "C" NOT NULL,
    revision          integer     NOT NULL DEFAULT 1 CHECK (revision > 0),
    import_file_id    bigint      NOT NULL REFERENCES import_file (id),
    first_line        bigint      NOT NULL,
    digest            bytea       NOT NULL CHECK (length(digest) = 32),
    business_date     date        NOT NULL,
    fee_mode          text        NOT NULL CHECK (fee_mode IN ('withheld', 'charged')),
    unit              integer     NOT NULL CHECK (unit >= 0),
    state             text        NOT NULL CHECK (state IN
        ('received', 'pending', 'settling', 'settled', 'broken', 'quarantined', 'cancelled', 'reversed')),
    items             bigint      NOT NULL,
    break_reason      text,
    attempts          integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    retry_at          timestamptz,
    fence_generation  bigint      NOT NULL DEFAULT 0,
    fence_token       bigint      NOT NULL DEFAULT 0,
    holder            uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    run_id            bigint      REFERENCES run (id),
    claimed_at        timestamptz,
    settled_at        timestamptz,
    UNIQUE (source, external_batch_id, revision)
);
-- A corrected batch is a new revision; only one of them may hold the item identities.
CREATE UNIQUE INDEX settlement_batch_one_live ON settlement_batch (source, external_batch_id)
    WHERE state NOT IN ('cancelled', 'reversed');
-- What a claim looks for, and a charge under the advisory-xact guard. Settled rows leave the index, so it stays as small as the work that is left.
CREATE INDEX settlement_batch_due ON settlement_batch (unit, attempts, id) WHERE state IN ('pending', 'settling');
-- The same for the row-lock guard, which knows no units.
CREATE INDEX settlement_batch_pending ON settlement_batch (attempts, id) WHERE state = 'pending';
-- What waits for a person: looked at by every scrape of every instance.
CREATE INDEX settlement_batch_waiting ON settlement_batch (state) WHERE state IN ('broken', 'quarantined');
-- What a run has settled, for its history.
CREATE INDEX settlement_batch_run ON settlement_batch (run_id) WHERE state = 'settled';

-- One currency of a batch: what was counted, what the source declared and binds, and what settles besides the lines.
CREATE TABLE batch_total (
    batch_id                  bigint  NOT NULL REFERENCES settlement_batch (id),
    currency                  text    COLLATE "C" NOT NULL,
    items                     bigint  NOT NULL,
    debit_minor               bigint  NOT NULL,
    credit_minor              bigint  NOT NULL,
    gross_minor               bigint  NOT NULL,
    fee_minor                 bigint  NOT NULL,
    net_minor                 bigint  NOT NULL,
    remittance_minor          bigint  NOT NULL,
    declared_remittance_minor bigint  NOT NULL,
    rounding_minor            bigint  NOT NULL,
    difference_minor          bigint  NOT NULL,
    accepted_minor            bigint  NOT NULL DEFAULT 0,
    declared_items            bigint,
    declared_debit_minor      bigint,
    declared_credit_minor     bigint,
    declared_gross_minor      bigint,
    declared_fee_minor        bigint,
    declared_net_minor        bigint,
    tolerance_minor           bigint  NOT NULL,
    PRIMARY KEY (batch_id, currency)
);

-- The lines, immutable. net = gross - fee is a rule of the table, not of a program.
CREATE TABLE batch_item (
    batch_id       bigint  NOT NULL REFERENCES settlement_batch (id),
    line_no        bigint  NOT NULL,
    kind           text    NOT NULL,
    merchant       text    COLLATE "C" NOT NULL CHECK (merchant <> ''),
    currency       text    COLLATE "C" NOT NULL,
    gross_minor    bigint  NOT NULL,
    fee_minor      bigint  NOT NULL,
    net_minor      bigint  NOT NULL CHECK (net_minor = gross_minor - fee_minor),
    residual_micro bigint  NOT NULL,
    dedupe_key     text    COLLATE "C" NOT NULL,
    PRIMARY KEY (batch_id, line_no)
);

-- Identity of items across batches: the same transaction in two live batches is one too many. Rows leave only when their
-- batch is cancelled or reversed, in that transaction.
CREATE TABLE settled_item (
    source     text   COLLATE "C" NOT NULL,
    dedupe_key text   COLLATE "C" NOT NULL,
    batch_id   bigint NOT NULL,
    line_no    bigint NOT NULL,
    PRIMARY KEY (source, dedupe_key)
);
CREATE INDEX settled_item_batch ON settled_item (batch_id);
