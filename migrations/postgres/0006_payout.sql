-- Payouts. The payout table is the outbox: the row is committed before anything is sent, and a relay sends what it finds here.

CREATE TABLE payout (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    merchant        text        COLLATE "C" NOT NULL,
    currency        text        COLLATE "C" NOT NULL,
    run_id          bigint      NOT NULL REFERENCES run (id),
    refusals        integer     NOT NULL DEFAULT 0 CHECK (refusals >= 0), -- how many payouts of this run were definitely refused before
    idempotency_key text        COLLATE "C" NOT NULL UNIQUE,
    amount_minor    bigint      NOT NULL CHECK (amount_minor > 0),
    state           text        NOT NULL CHECK (state IN
        ('created', 'sending', 'accepted', 'declined', 'unknown', 'manual_review', 'paid', 'failed', 'returned')),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (merchant, currency, run_id, refusals)
);

-- An entry that books a payout says which one (see 0003).
ALTER TABLE journal_entry ADD FOREIGN KEY (payout_id) REFERENCES payout (id);
