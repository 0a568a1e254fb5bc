//! What the oracle says of the append-only tables: a trigger is there by its name, or by what it does.

use crate::fixture::{Named, Place};
use crate::verify::assert_only;
use std::collections::BTreeSet;

pub const EVERY: &[Named] = tests![append_only_triggers, append_only_triggers_that_refuse_nothing];

async fn append_only_triggers(place: Place) {
    let books = place.open().await;
    let triggers = books.raw.triggers().await;
    let tables: BTreeSet<_> = triggers.iter().map(|trigger| trigger.table.as_str()).collect();
    assert_eq!(Vec::from_iter(tables), ledger::verify::APPEND_ONLY);
    assert!(triggers.len() >= 10, "{triggers:?}");
    for trigger in triggers {
        books.raw.run(&trigger.off).await.expect("switched off");
        assert_only(&books, "append_only_triggers", &format!("table {} lacks its trigger {}", trigger.table, trigger.name)).await;
        books.raw.run(&trigger.on).await.expect("switched on");
    }
    books.assert_books_hold().await;
}

/// By its name it is there. (The function is everyone's trigger, so the first table stands for all.)
async fn append_only_triggers_that_refuse_nothing(place: Place) {
    let books = place.open().await;
    let (wrong, right, name): (&[&str], _, _) = if place.is_postgres() { POSTGRES_TRIGGERS } else { SQLITE_TRIGGERS };
    for wrong in wrong {
        books.raw.run(wrong).await.expect("changed");
        assert_only(&books, "append_only_triggers", &format!("table audit_log lacks its trigger {name}")).await;
        books.raw.run(right).await.expect("changed back");
        books.assert_books_hold().await;
    }
}

type Triggers = (&'static [&'static str], &'static str, &'static str);

const POSTGRES_TRIGGERS: Triggers = (
    &[
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN coalesce(NEW, OLD); END'",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'audit_log is append-only: UPDATE refused'; EXCEPTION WHEN OTHERS THEN RETURN coalesce(NEW, OLD); END $$",
        "CREATE FUNCTION refuse_nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN coalesce(NEW, OLD); END';
        CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_nothing()",
        "CREATE OR REPLACE TRIGGER append_only BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        "CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OF reason OR DELETE ON audit_log
        FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        "CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log
        FOR EACH ROW WHEN (OLD.id > 7) EXECUTE FUNCTION refuse_change()",
        "ALTER TABLE audit_log ENABLE REPLICA TRIGGER append_only",
    ],
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
    END $$;
    CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
    ALTER TABLE audit_log ENABLE TRIGGER append_only",
    "append_only",
);

const SQLITE_TRIGGERS: Triggers = (
    &[
        "DROP TRIGGER audit_log_no_update; CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
        BEGIN SELECT RAISE(IGNORE); END",
        "DROP TRIGGER audit_log_no_update; CREATE TRIGGER audit_log_no_update BEFORE INSERT ON audit_log
        BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: UPDATE refused') WHERE NEW.id > 7; END",
        "DROP TRIGGER audit_log_no_update; CREATE TRIGGER audit_log_no_update BEFORE UPDATE OF reason ON audit_log
        BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: UPDATE refused'); END",
        "DROP TRIGGER audit_log_no_update; CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
        WHEN OLD.id > 7 BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: UPDATE refused'); END",
        "DROP TRIGGER audit_log_no_update; CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
        BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: UPDATE refused') WHERE OLD.id > 7; END",
    ],
    "DROP TRIGGER audit_log_no_update; CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
    BEGIN SELECT RAISE(ABORT, 'audit_log is append-only: UPDATE refused'); END",
    "audit_log_no_update",
);
