-- Schedules, and work that is not settlement but runs under the same keys, leases and fences.

-- How far a schedule is planned. The mark is moved by compare-and-set in the transaction that inserts the runs, so planners on
-- any number of instances plan every occurrence once. The definition decides which keys occur: an instance that has
-- another one plans nothing until it is adopted.
CREATE TABLE schedule_mark (
    schedule   TEXT PRIMARY KEY,
    mark       TEXT NOT NULL, -- every occurrence up to here is planned; by the database's clock
    definition TEXT NOT NULL,
    moved_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

-- One's own jobs. Each has a unit, and with it a lease and a row of unit_fence, like a partition of the batches; the numbers
-- begin where no partition can be.
CREATE TABLE job (
    name TEXT    PRIMARY KEY,
    unit INTEGER NOT NULL UNIQUE CHECK (unit >= 1000000)
) STRICT;

-- Which job is done for which run, and under which fence it was.
CREATE TABLE job_run (
    job              TEXT    NOT NULL REFERENCES job (name),
    run_id           INTEGER NOT NULL REFERENCES run (id),
    fence_generation INTEGER NOT NULL,
    fence_token      INTEGER NOT NULL,
    holder           TEXT    NOT NULL,
    finished_at      TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (job, run_id)
) STRICT;
