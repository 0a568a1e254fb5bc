-- Schedules, and work that is not settlement but runs under the same keys, leases and fences.

-- How far a schedule is planned. The mark is moved by compare-and-set in the transaction that inserts the runs, so planners on
-- any number of instances plan every occurrence once. The definition decides which keys occur: an instance that has
-- another one plans nothing until it is adopted.
CREATE TABLE schedule_mark (
    schedule   text        COLLATE "C" PRIMARY KEY,
    mark       timestamptz NOT NULL, -- every occurrence up to here is planned; by the database's clock
    definition text        COLLATE "C" NOT NULL,
    moved_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One's own jobs. Each has a unit, and with it a lease and a row of unit_fence, like a partition of the batches; the numbers
-- begin where no partition can be.
CREATE TABLE job (
    name text    COLLATE "C" PRIMARY KEY,
    unit integer NOT NULL UNIQUE CHECK (unit >= 1000000)
);

-- Which job is done for which run, and under which fence it was.
CREATE TABLE job_run (
    job              text        COLLATE "C" NOT NULL REFERENCES job (name),
    run_id           bigint      NOT NULL REFERENCES run (id),
    fence_generation bigint      NOT NULL,
    fence_token      bigint      NOT NULL,
    holder           uuid        NOT NULL,
    finished_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, run_id)
);
