//! deploy/postgres as a deployment applies it: the owner migrates, instances run without any right on the schema, an auditor reads.
//!
//! Everything the program does is done here as `settled_runtime`, so a statement that needs one more privilege than grants.sql gives
//! fails here and not at night.

use crate::world::{World, number};
use lab::postgres::PostgresUrl;
use lab::trials::Suite;
use ledger::verify::APPEND_ONLY;
use std::path::Path;

pub(crate) fn add(suite: Suite) -> Suite {
    let suite =
        suite.with_postgres("deploy/postgres: instances have the privileges they need under leases", |url: &PostgresUrl| {
            under_leases(&Roles::of(url));
        });
    let suite =
        suite.with_postgres("deploy/postgres: instances have the privileges they need under row locks", |url: &PostgresUrl| {
            under_row_locks(&Roles::of(url));
        });
    let suite = suite.with_postgres(
        "deploy/postgres: an instance may neither change what is append-only nor the schema",
        |url: &PostgresUrl| {
            refused_to_instances(&Roles::of(url));
        },
    );
    let suite = suite.with_postgres("deploy/postgres: an auditor verifies the books and writes nothing", |url: &PostgresUrl| {
        auditor_reads(&Roles::of(url));
    });
    suite.with_postgres("deploy/postgres: no table is forgotten in grants.sql", |url: &PostgresUrl| {
        no_table_is_forgotten(&Roles::of(url));
    })
}

const ROLES: [&str; 3] = ["settled_owner", "settled_runtime", "settled_auditor"];

/// One ledger with its roles. Roles belong to the whole server, which other tests use at the same time, so they are named after
/// their database here.
struct Roles {
    admin: PostgresUrl,
    database: String,
    owner: World,
    runtime: World,
    auditor: World,
}

impl Roles {
    /// As deploy/README.md tells it: roles, schema, grants. All of it twice, as every deployment after the first does.
    fn of(admin: &PostgresUrl) -> Roles {
        let database = ask(admin, "SELECT current_database()");
        let (owner, world) = (as_role(admin, &database, "settled_owner"), World::postgres(admin));
        let instance = |role| {
            let url = as_role(admin, &database, role);
            world.with(&[("SETTLED__DATABASE__URL", url.as_str()), ("SETTLED__DATABASE__MIGRATE", "false")])
        };
        let roles = Roles {
            admin: admin.clone(),
            owner: World::postgres(&owner),
            runtime: instance("settled_runtime"),
            auditor: instance("settled_auditor"),
            database,
        };
        for _ in 0..2 {
            ask(admin, &roles.named_here("roles.sql"));
            let (code, _, err) = roles.owner.settled(&["migrate"]);
            assert_eq!(code, 0, "{err}");
            ask(&owner, &roles.named_here("grants.sql"));
        }
        roles
    }

    /// A file of deploy/postgres, about the roles of this database.
    fn named_here(&self, file: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/postgres").join(file);
        let sql = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        ROLES.iter().fold(sql, |sql, role| sql.replace(role, &named_after(&self.database, role)))
    }

    /// What the server says to a statement of this role.
    fn try_as(&self, role: &str, sql: &str) -> Result<String, String> {
        as_role(&self.admin, &self.database, role).query(sql).map_err(|error| error.to_string())
    }

    /// The server's reason is the missing privilege, and not a trigger that would have been asked otherwise.
    fn assert_denied(&self, role: &str, sql: &str) {
        let told = self.try_as(role, sql).expect_err(sql);
        assert!(told.contains("permission denied") || told.contains("must be owner"), "{sql}: {told}");
    }

    /// Tables about which grants.sql says nothing to instances.
    fn forgotten(&self) -> Vec<String> {
        let role = named_after(&self.database, "settled_runtime");
        let tables = ask(
            &self.admin,
            &format!(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
                AND NOT has_table_privilege('{role}', oid, 'SELECT') ORDER BY relname"
            ),
        );
        tables.lines().map(str::to_owned).collect()
    }
}

impl Drop for Roles {
    /// Also after a panic: a role outlives its database.
    fn drop(&mut self) {
        for role in ROLES.map(|role| named_after(&self.database, role)) {
            let gone =
                self.admin.query(&format!("DROP OWNED BY {role}")).and_then(|_| self.admin.query(&format!("DROP ROLE {role}")));
            if let Err(error) = gone {
                eprintln!("role {role} stays behind: {error}");
            }
        }
    }
}

fn named_after(database: &str, role: &str) -> String {
    format!("{database}_{}", role.trim_start_matches("settled_"))
}

fn as_role(admin: &PostgresUrl, database: &str, role: &str) -> PostgresUrl {
    let (scheme, rest) = admin.split_once("://").expect("a URL");
    let place = rest.split_once('@').map_or(rest, |(_, place)| place);
    PostgresUrl::new(format!("{scheme}://{}@{place}", named_after(database, role)))
}

fn ask(url: &PostgresUrl, sql: &str) -> String {
    url.query(sql).unwrap_or_else(|error| panic!("{error}"))
}

/// With an end: an instance that may not touch its leases takes the lock service for unavailable, and waits.
fn settle(instance: &World) {
    instance.json(&["run", "--json", "--wait", "60"]);
}

/// Every command of the lease guard, a frozen instance's refused write, and a batch that kills its workers.
fn under_leases(roles: &Roles) {
    let runtime = &roles.runtime.with_more(&[("SETTLED__LEASE__TTL_MS", "500")]);
    let (code, _, err) = runtime.settled(&["config", "check"]);
    assert_eq!(code, 0, "{err}");
    runtime.import_sample(20, 3);
    quarantined(&runtime.with_more(&[("SETTLED__WORKER__MAX_ATTEMPTS", "1")]));
    assert_eq!(ask(&roles.admin, "SELECT count(*) FROM lease"), "0", "what was held is given back");
    broken_batches(runtime);
    refused_write(runtime);
    corrected(runtime);
    scheduled(roles, runtime);
    for listing in
        [&["fence", "list", "--json"][..], &["lease", "list", "--json"], &["batch", "list", "--json"], &["status", "--json"]]
    {
        runtime.json(listing);
    }
    let (code, _, err) = runtime.settled(&["fence", "adopt", "--reason", "restored from a backup"]);
    assert_eq!(code, 0, "{err}");
    let report = runtime.json(&["verify", "--json"]);
    assert_eq!(report["ok"], true, "{report}");
}

/// One attempt is all it gets, and that kills its worker.
fn quarantined(runtime: &World) {
    assert_eq!(runtime.start("killed", &["run", "--json", "--signal-at", "InsideSettleTx=kill#7", "--wait", "60"]).end().0, -1);
    let (code, did, err) = runtime.settled(&["run", "--json", "--wait", "60"]);
    assert_eq!(code, 3, "{did}{err}");
    let quarantined = runtime.json(&["batch", "list", "--state", "quarantined", "--json"]);
    for batch in quarantined.as_array().expect("a list") {
        runtime.json(&["batch", "retry", &number(batch, "id").to_string(), "--reason", "cured", "--json"]);
    }
    settle(runtime);
}

/// One is withdrawn, one accepted.
fn broken_batches(runtime: &World) {
    let lines = ["B1", "B2"].map(|id| {
        format!("{id},2026-01-05,charge,shop,EUR,10.00,0.00,{id}t\n{id},2026-01-05,remittance,shop,EUR,-9.50,0.00,{id}p\n")
    });
    let file =
        runtime.file("broken.csv", format!("batch_id,business_date,kind,merchant,currency,gross,fee,id\n{}", lines.concat()));
    let (code, out, err) = runtime.settled(&["import", file.to_str().expect("UTF-8"), "--profile", "canonical-csv", "--json"]);
    assert_eq!(code, 3, "{out}{err}");
    let imported: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    for (batch, decision) in [(0, "cancel"), (1, "accept")] {
        let id = number(&imported["batches"][batch], "id").to_string();
        runtime.json(&["batch", decision, &id, "--reason", "as the source said", "--json"]);
    }
    settle(runtime);
}

/// One is frozen behind its last look at the lease, another takes over: the refusal is a row.
fn refused_write(runtime: &World) {
    let day = chrono::NaiveDate::from_ymd_opt(2026, 1, 6).expect("a date");
    let file = runtime.file("next.csv", intake::sample::canonical(10, 2, day, 12));
    runtime.import(&file, "canonical-csv");
    let mut frozen = runtime.start("frozen", &["run", "--json", "--signal-at", "BeforeSettleTx=stop", "--wait", "60"]);
    frozen.wait_stopped();
    settle(runtime);
    frozen.process.wake().expect("a child");
    assert!(number(&frozen.end_well(), "fenced") > 0, "{}", frozen.log());
    assert!(!runtime.rejections().is_empty());
}

/// One settled batch is taken back, one replaced by what its source sends instead.
fn corrected(runtime: &World) {
    let day = chrono::NaiveDate::from_ymd_opt(2026, 1, 7).expect("a date");
    let imported = runtime.import(&runtime.file("wrong.csv", intake::sample::canonical(2, 2, day, 13)), "canonical-csv");
    settle(runtime);
    let id = number(&imported["batches"][0], "id").to_string();
    runtime.json(&["batch", "reverse", &id, "--reason", "not ours", "--json"]);
    let right = runtime.file("right.csv", intake::sample::canonical(2, 3, day, 13));
    let right = right.to_str().expect("UTF-8");
    runtime.json(&["batch", "replace", "--file", right, "--profile", "canonical-csv", "--reason", "corrected", "--json"]);
    settle(runtime);
}

/// Planned, missed, opened after all, adopted; and a job of one's own, whose statements are those of the ledger.
fn scheduled(roles: &Roles, runtime: &World) {
    let every = |cron| {
        let settings = [
            ("SETTLED__SCHEDULE__NIGHTLY__CRON", cron),
            ("SETTLED__SCHEDULE__NIGHTLY__ZONE", "UTC"),
            ("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"),
            ("SETTLED__SERVE__IDLE_POLL_MS", "500"),
        ];
        runtime.with_more(&settings)
    };
    let served = every("*/2 * * * * *");
    let mut instance = served.start("served", &["serve"]);
    instance.wait_for("run finished");
    instance.process.terminate().expect("a signal");
    instance.end_quietly();
    let (code, _, err) = every("0 2 * * *").settled(&["schedule", "adopt", "nightly", "--reason", "by night"]);
    assert_eq!(code, 0, "{err}");
    for sql in [
        "UPDATE run SET state = 'missed', missed_slots = 1, missed_since = now(), finished_at = NULL WHERE slot <> '-'",
        "INSERT INTO job (name, unit) VALUES ('report', 1000000)",
        "INSERT INTO unit_fence (unit, generation) VALUES (1000000, 0)",
        "INSERT INTO job_run SELECT 'report', min(id), 0, 0, gen_random_uuid() FROM run",
    ] {
        roles.try_as("settled_runtime", sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    every("0 2 * * *").json(&["schedule", "list", "--json"]);
    every("0 2 * * *").json(&["schedule", "history", "--json"]);
}

fn under_row_locks(roles: &Roles) {
    let runtime = &roles.runtime.with_more(&[("SETTLED__WORKER__GUARD", "row-lock"), ("SETTLED__WORKER__PARTITIONS", "20")]);
    let (code, _, err) = runtime.settled(&["config", "adopt", "--reason", "all effects are in this database"]);
    assert_eq!(code, 0, "{err}");
    runtime.import_sample(20, 3);
    settle(runtime);
    runtime.assert_all_settled(20);
}

fn refused_to_instances(roles: &Roles) {
    roles.runtime.import_sample(3, 2);
    settle(&roles.runtime);
    for table in APPEND_ONLY {
        let columns = ask(
            &roles.admin,
            &format!("SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum"),
        );
        for column in columns.lines() {
            roles.assert_denied("settled_runtime", &format!("UPDATE {table} SET {column} = DEFAULT"));
        }
        for change in
            [format!("DELETE FROM {table}"), format!("TRUNCATE {table} CASCADE"), format!("SELECT FROM {table} FOR UPDATE")]
        {
            roles.assert_denied("settled_runtime", &change);
        }
    }
    for change in [
        "UPDATE ledger_meta SET ledger_id = gen_random_uuid()",
        "UPDATE batch_total SET net_minor = 0",
        "UPDATE run SET business_date = business_date + 1",
        "UPDATE run SET covers_from = NULL",
        "DELETE FROM run",
        "DELETE FROM job_run",
        "DELETE FROM settlement_batch",
        "TRUNCATE lease",
        "CREATE TABLE mine (id integer)",
        "CREATE SCHEMA mine",
        "CREATE FUNCTION refuse_change() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "ALTER TABLE posting DISABLE TRIGGER append_only",
        "ALTER TABLE posting ADD COLUMN mine integer",
        "DROP TRIGGER append_only ON posting",
        "DROP TABLE payout",
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (99, '', true, '', 0)",
    ] {
        roles.assert_denied("settled_runtime", change);
    }
    roles.runtime.assert_all_settled(3);
    // an instance that may migrate by its configuration may not by its role; where nothing is to be done it needs no right
    let migrates = roles.runtime.with_more(&[("SETTLED__DATABASE__MIGRATE", "true")]);
    assert_eq!(migrates.settled(&["migrate"]).0, 0, "the schema is as this program has it");
    ask(&roles.admin, "DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)");
    let (code, _, err) = migrates.settled(&["migrate"]);
    assert!(code == 2 && err.contains("set database.migrate = false"), "{err}");
}

fn auditor_reads(roles: &Roles) {
    roles.runtime.import_sample(3, 2);
    settle(&roles.runtime);
    roles.auditor.assert_all_settled(3);
    for look in
        [&["status", "--json"][..], &["batch", "list", "--json"], &["batch", "show", "1", "--json"], &["fence", "list", "--json"]]
    {
        roles.auditor.json(look);
    }
    let (code, _, err) = roles.auditor.settled(&["batch", "cancel", "1", "--reason", "I may not"]);
    assert!(code != 0 && (err.contains("permission denied") || err.contains("read-only")), "{err}");
    let tables = ask(&roles.admin, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
    for table in tables.lines() {
        for change in [format!("INSERT INTO {table} DEFAULT VALUES"), format!("DELETE FROM {table}"), format!("TRUNCATE {table}")]
        {
            roles.assert_denied("settled_auditor", &format!("BEGIN READ WRITE; {change}"));
        }
    }
    roles.assert_denied("settled_auditor", "BEGIN READ WRITE; CREATE TEMPORARY TABLE mine (id integer)");
    roles.assert_denied("settled_auditor", "BEGIN READ WRITE; CREATE TABLE mine (id integer)");
    let told = roles.try_as("settled_auditor", "UPDATE lease SET holder = holder").expect_err("it reads");
    assert!(told.contains("read-only"), "{told}");
}

fn no_table_is_forgotten(roles: &Roles) {
    assert_eq!(roles.forgotten(), [""; 0], "say in deploy/postgres/grants.sql what instances may do with them");
    // and it would be seen: a table made by the owner is closed to instances
    roles.try_as("settled_owner", "CREATE TABLE of_tomorrow (id integer)").expect("the owner may");
    assert_eq!(roles.forgotten(), ["of_tomorrow"]);
    let others = ask(
        &roles.admin,
        &format!(
            "SELECT DISTINCT a.grantee::regrole FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
            WHERE c.relnamespace = 'public'::regnamespace AND a.grantee::regrole::text NOT LIKE '%{}%'",
            roles.database
        ),
    );
    assert_eq!(others, "", "somebody else has rights on the ledger's tables");
}
