-- What each role may do with each table. As settled_owner, after every `settled migrate`; harmless when repeated:
--     psql --dbname settled --username settled_owner --set ON_ERROR_STOP=1 --file grants.sql
--
-- Table by table and not by ALTER DEFAULT PRIVILEGES: what is append-only cannot be said by default, and a table nobody thought about is
-- then closed instead of open. (A new version's instance says "permission denied" until this has run; a running one notices nothing.)
-- One transaction: nobody ever sees the moment between REVOKE and GRANT.
BEGIN;

-- The ledger's own tables only: what you put beside them (a job's table) keeps its grants.
REVOKE ALL ON journal_entry, posting, batch_item, fence_rejection, audit_log, account, import_file, fence_source, job, job_run, run,
    settlement_batch, account_balance, unit_fence, schedule_mark, fence_counter, batch_total, ledger_meta, settled_item, lease, payout,
    _sqlx_migrations FROM PUBLIC, settled_runtime, settled_auditor;

-- Append-only: posted facts, what was imported, what was refused, what was decided. The triggers refuse a change too, from the owner as
-- well; without the privilege there is nothing to ask them.
GRANT SELECT, INSERT ON journal_entry, posting, batch_item, fence_rejection, audit_log TO settled_runtime;

-- Written once, by the code; no trigger says so, the privilege does.
GRANT SELECT, INSERT ON account, import_file, fence_source, job, job_run TO settled_runtime;

-- What moves: states, balances, the newest holder of each unit, tokens (the counter's one row came with the schema).
GRANT SELECT, INSERT, UPDATE ON settlement_batch, account_balance, unit_fence, schedule_mark TO settled_runtime;
GRANT SELECT, UPDATE ON fence_counter TO settled_runtime;

-- A run is noted as finished, and a missed one may be opened after all. Which occurrence it is and what it covers stays.
GRANT SELECT, INSERT, UPDATE (state, scheduled_for, sources, note, missed_slots, missed_since, opened_by, opened_at, finished_at)
    ON run TO settled_runtime;

-- `batch accept` writes this one column. What was counted and declared stays as it was read.
GRANT SELECT, INSERT, UPDATE (accepted_minor) ON batch_total TO settled_runtime;

-- `config adopt` writes these two. Who the ledger is cannot be changed; its row is made by `settled migrate`.
-- (A row lock, which every import takes here, needs UPDATE on some column.)
GRANT SELECT, UPDATE (partitions, guard) ON ledger_meta TO settled_runtime;

-- Rows that leave: identities of a cancelled batch, leases given back.
GRANT SELECT, INSERT, DELETE ON settled_item TO settled_runtime;
GRANT SELECT, INSERT, UPDATE, DELETE ON lease TO settled_runtime;

-- Read only: nothing pays out yet; which migrations were applied is the owner's to write.
GRANT SELECT ON payout, _sqlx_migrations TO settled_runtime;

-- The auditor reads everything: a check that cannot see a table is no check.
GRANT SELECT ON ALL TABLES IN SCHEMA public TO settled_auditor;

COMMIT;
