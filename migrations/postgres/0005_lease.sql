-- Leases, for instances that use the ledger's own database as their lock service. A lease only saves duplicate work and makes
-- takeover fast: that a superseded holder writes nothing is decided by the fence (see unit_fence), never by this table.
CREATE TABLE lease (
    -- "<ledger id>/unit/<n>"; "C" compares bytes, so no two names are equal in one locale and different in another
    name        text        COLLATE "C" PRIMARY KEY,
    -- the process start that was granted it
    holder      uuid        NOT NULL,
    -- the grant: every renewal and release repeats it, so that nobody touches a grant that is not his own
    nonce       uuid        NOT NULL,
    -- both by clock_timestamp() of this database, in statements of their own: never a client's clock, and never now(), which is
    -- the start of the transaction and may be long ago. Nothing is checked between the two: a server's clock can be set back between a grant and its renewal.
    acquired_at timestamptz NOT NULL,
    -- from this instant on anyone may take it; the row stays until somebody does, or its holder gives it back.
    -- Not indexed: a renewal then changes no index and dead versions are pruned in the page itself, without vacuum.
    expires_at  timestamptz NOT NULL
) WITH (fillfactor = 50);
