-- The fence: the resource's own memory of who may write.

-- Tokens for every lock service that cannot give ordered ones. One counter per ledger; it survives the release and the expiry
-- of any lease. A counter in the lock service would be reset with it.
CREATE TABLE fence_counter (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    token    bigint  NOT NULL DEFAULT 0
);
INSERT INTO fence_counter DEFAULT VALUES;

-- Where tokens come from. Only the source with the newest generation may register; a source whose tokens may have gone back
-- (restored from a backup) is adopted again under a higher one.
CREATE TABLE fence_source (
    generation bigint      PRIMARY KEY CHECK (generation > 0),
    source     text        COLLATE "C" NOT NULL,
    reason     text        NOT NULL,
    adopted_by text        NOT NULL,
    adopted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The newest holder of each unit. Every claim and every settlement names this row in its WHERE clause.
CREATE TABLE unit_fence (
    unit          integer     PRIMARY KEY CHECK (unit >= 0),
    generation    bigint      NOT NULL DEFAULT 0,
    token         bigint      NOT NULL DEFAULT 0,
    holder        uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    registered_at timestamptz
);

-- Every refused write. Should stay empty; a row means that a holder was frozen or cut off for longer than its lease.
CREATE TABLE fence_rejection (
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rejected_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    operation         text        NOT NULL CHECK (operation IN ('register', 'claim', 'settle', 'release', 'job')),
    unit              integer     NOT NULL,
    batch_id          bigint,
    generation        bigint      NOT NULL,
    token             bigint      NOT NULL,
    holder            uuid        NOT NULL,
    stored_generation bigint      NOT NULL,
    stored_token      bigint      NOT NULL,
    stored_holder     uuid        NOT NULL
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON fence_rejection FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON fence_rejection FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
