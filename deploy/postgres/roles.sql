-- Three roles, and a database that lets in nobody else. Once per ledger, as an administrator, connected to the ledger's database, before
-- the first `settled migrate`; harmless when repeated:
--     psql --dbname settled --set ON_ERROR_STOP=1 --file roles.sql
-- What each may do with the tables is in grants.sql, which the owner applies after every migration. Plain SQL, so that any client will do.
--
--   settled_owner    owns the schema and runs `settled migrate`. No instance runs as it: an owner can drop a trigger.
--   settled_runtime  runs `settled serve`, `run`, `import`, and the commands of operators.
--   settled_auditor  reads: `settled verify`, `status`, `batch list`, a reporting tool.
--
-- Roles belong to the whole cluster: two ledgers in one cluster need two sets of names. They have no password yet, so nobody can log in
-- with one; give each its own with \password, or a line in pg_hba.conf (peer, cert).
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['settled_owner', 'settled_runtime', 'settled_auditor'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE', name);
        END IF;
    END LOOP;
    -- TEMPORARY: an import streams into a table of its own session before it touches a shared one
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO settled_runtime', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO settled_owner, settled_auditor', current_database());
END
$$;

-- Before PostgreSQL 15 everybody may create tables here, and with them what a search path finds first.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO settled_owner;
GRANT USAGE ON SCHEMA public TO settled_runtime, settled_auditor;

-- A second lock on the auditor's door, for the day somebody grants it too much. (A session can turn it off; a missing grant it cannot.)
ALTER ROLE settled_auditor SET default_transaction_read_only = on;
