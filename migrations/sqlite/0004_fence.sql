-- The fence: the resource's own memory of who may write.

-- Tokens for every lock service that cannot give ordered ones. One counter per ledger; it survives the release and the expiry
-- of any lease. A counter in the lock service would be reset with it.
CREATE TABLE fence_counter (
    only_row INTEGER PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    token    INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO fence_counter DEFAULT VALUES;

-- Where tokens come from. Only the source with the newest generation may register; a source whose tokens may have gone back
-- (restored from a backup) is adopted again under a higher one.
CREATE TABLE fence_source (
    generation INTEGER PRIMARY KEY CHECK (generation > 0),
    source     TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    adopted_by TEXT    NOT NULL,
    adopted_at TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

-- The newest holder of each unit. Every claim and every settlement names this row in its WHERE clause.
CREATE TABLE unit_fence (
    unit          INTEGER PRIMARY KEY CHECK (unit >= 0),
    generation    INTEGER NOT NULL DEFAULT 0,
    token         INTEGER NOT NULL DEFAULT 0,
    holder        TEXT    NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    registered_at TEXT
) STRICT;

-- Every refused write. Should stay empty; a row means that a holder was frozen or cut off for longer than its lease.
CREATE TABLE fence_rejection (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    rejected_at       TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    operation         TEXT    NOT NULL CHECK (operation IN ('register', 'claim', 'settle', 'release', 'job')),
    unit              INTEGER NOT NULL,
    batch_id          INTEGER,
    generation        INTEGER NOT NULL,
    token             INTEGER NOT NULL,
    holder            TEXT    NOT NULL,
    stored_generation INTEGER NOT NULL,
    stored_token      INTEGER NOT NULL,
    stored_holder     TEXT    NOT NULL
) STRICT;
CREATE TRIGGER fence_rejection_no_update BEFORE UPDATE ON fence_rejection
    BEGIN SELECT RAISE(ABORT, 'fence_rejection is append-only: UPDATE refused'); END;
CREATE TRIGGER fence_rejection_no_delete BEFORE DELETE ON fence_rejection
    BEGIN SELECT RAISE(ABORT, 'fence_rejection is append-only: DELETE refused'); END;
CREATE TRIGGER fence_rejection_no_replace BEFORE INSERT ON fence_rejection
    WHEN EXISTS (SELECT 1 FROM fence_rejection WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'fence_rejection is append-only: the key is taken'); END;
