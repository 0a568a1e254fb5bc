-- Posted facts. They are only ever added: a mistake is taken back by a reversing entry, never by changing one.

-- entry_key is made of business facts, so that a repeated settlement meets its first entry (settle:<batch>:<revision>:<currency>).
-- The fence it was written under is kept, so that the books themselves show that no superseded holder wrote.
CREATE TABLE journal_entry (
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry_key         text        COLLATE "C" NOT NULL UNIQUE,
    kind              text        NOT NULL CHECK (kind IN ('settle', 'reverse', 'payout')),
    batch_id          bigint      REFERENCES settlement_batch (id),
    currency          text        COLLATE "C" NOT NULL,
    unit              integer     NOT NULL,
    fence_generation  bigint      NOT NULL DEFAULT 0,
    fence_token       bigint      NOT NULL DEFAULT 0,
    holder            uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    run_id            bigint      REFERENCES run (id),
    reverses_entry_id bigint      UNIQUE REFERENCES journal_entry (id),
    -- which payout it books: its cut, its payment, or its way back (0006 makes the table, and the key to it)
    payout_id         bigint,
    payout_step       text        CHECK (payout_step IN ('cut', 'paid', 'undone')),
    posted_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- an entry belongs to what its kind says: nothing is posted for nothing
    CONSTRAINT journal_entry_belongs CHECK (
        (kind = 'settle' AND batch_id IS NOT NULL AND reverses_entry_id IS NULL AND payout_id IS NULL)
        OR (kind = 'reverse' AND batch_id IS NOT NULL AND reverses_entry_id IS NOT NULL AND payout_id IS NULL)
        OR (kind = 'payout' AND payout_id IS NOT NULL AND batch_id IS NULL)),
    CONSTRAINT journal_entry_step CHECK ((payout_id IS NULL) = (payout_step IS NULL))
);
CREATE INDEX journal_entry_batch ON journal_entry (batch_id);
CREATE UNIQUE INDEX journal_entry_payout ON journal_entry (payout_id, payout_step) WHERE payout_id IS NOT NULL;

-- One row per (entry, account, side): summed over the lines of the batch, never netted across sides.
CREATE TABLE posting (
    entry_id     bigint  NOT NULL REFERENCES journal_entry (id),
    account_id   bigint  NOT NULL REFERENCES account (id),
    side         text    NOT NULL CHECK (side IN ('D', 'C')),
    amount_minor bigint  NOT NULL CHECK (amount_minor > 0),
    PRIMARY KEY (entry_id, account_id, side)
);

-- Cumulative debits and credits, striped by unit: only the unit's holder writes its stripe, so that instances share no hot
-- row (one row per account would be held until the flush of every commit returns). A balance is the sum of its stripes.
-- Unit -1 is the stripe of operator postings.
CREATE TABLE account_balance (
    account_id   bigint  NOT NULL REFERENCES account (id),
    unit         integer NOT NULL,
    debit_minor  bigint  NOT NULL CHECK (debit_minor >= 0),
    credit_minor bigint  NOT NULL CHECK (credit_minor >= 0),
    PRIMARY KEY (account_id, unit)
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON journal_entry FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON posting       FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON batch_item    FOR EACH ROW EXECUTE FUNCTION refuse_change();
-- TRUNCATE fires no row trigger, and TRUNCATE ... CASCADE reaches tables that were not named.
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON journal_entry FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON posting       FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON batch_item    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
