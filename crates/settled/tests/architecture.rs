//! The house rules, held by reading the manifests and the sources. README.md says them for people.

mod repository;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use repository::{Text, files, names, product, read, root, words};
use std::collections::BTreeSet;

/// Which crate of ours may need which. A new crate is a new line.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("lab", &[]),
    ("lease", &["domain"]),
    ("ledger", &["domain"]),
    ("intake", &["domain"]),
    ("scheduler", &["domain", "ledger"]),
    ("worker", &["domain", "lease", "ledger"]),
    ("chaos", &["domain", "intake", "lab", "lease", "ledger", "worker"]),
    ("settled", &["chaos", "domain", "intake", "lease", "ledger", "scheduler", "worker"]),
    ("xtask", &["lab"]),
];

/// A crate of others that is behind a contract of ours, and who owns it.
const OWNERS: &[(&str, &[&str])] = &[
    // the experiments of chaos have tables and keys of their own, without any of ours
    ("sqlx", &["chaos", "lease", "ledger"]),
    ("redis", &["chaos", "lease"]),
    ("stateright", &["chaos"]),
    ("maud", &["chaos"]),
    ("plotters", &["chaos"]),
    ("axum", &["settled"]),
    ("backon", &["ledger"]),
    ("croner", &["scheduler"]),
    ("tokio-cron-scheduler", &["scheduler"]),
    ("csv", &["intake"]),
    ("encoding_rs", &["intake"]),
    ("flate2", &["intake", "settled"]),
    ("toml", &["intake", "settled", "xtask"]),
    ("config", &["settled"]),
    ("clap", &["settled", "xtask"]),
    ("clap_complete", &["settled"]),
    ("comfy-table", &["settled"]),
    ("indicatif", &["settled"]),
    ("metrics-exporter-prometheus", &["settled"]),
    ("tracing-subscriber", &["settled"]),
    ("libtest-mimic", &["chaos", "lab"]),
];

/// Who may use one of them beside its owner, and only in tests and examples. Work of one's own in a table of one's own speaks SQL, and
/// an example that did not would show nothing.
const IN_TESTS: &[(&str, &[&str])] = &[("sqlx", &["worker"])];

fn workspace() -> Metadata {
    let mut command = MetadataCommand::new();
    command.manifest_path(root().join("Cargo.toml")).no_deps();
    command.exec().expect("the workspace's metadata")
}

fn ours<'a>(package: &'a Package, kinds: &'a [DependencyKind]) -> impl Iterator<Item = &'a str> {
    let is_ours = |name: &str| ARROWS.iter().any(|(ours, _)| *ours == name);
    let all = package.dependencies.iter().filter(|dependency| kinds.contains(&dependency.kind));
    all.map(|dependency| dependency.name.as_str()).filter(move |name| is_ours(name))
}

#[test]
fn only_the_arrows_of_the_map() {
    let workspace = workspace();
    let packages: BTreeSet<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(packages, ARROWS.iter().map(|(name, _)| *name).collect(), "the crates of the map");
    for package in &workspace.packages {
        let (_, allowed) = ARROWS.iter().find(|(name, _)| *name == package.name.as_str()).expect("compared above");
        for to in ours(package, &[DependencyKind::Normal, DependencyKind::Build]) {
            assert!(allowed.contains(&to), "{} -> {to} is not on the map", package.name);
        }
        // a test may use servers of the lab, and nothing else that its crate may not
        for to in ours(package, &[DependencyKind::Development]) {
            assert!(allowed.contains(&to) || (to == "lab" && !allowed.is_empty()), "tests of {} -> {to}", package.name);
        }
        let folder = package.manifest_path.parent().and_then(|folder| folder.file_name());
        assert_eq!(folder, Some(package.name.as_str()), "a package is called as its folder");
        assert_eq!(package.publish.as_deref(), Some(&[][..]), "{} is not to be published", package.name);
    }
}

#[test]
fn a_driver_stays_with_its_owner() {
    for package in &workspace().packages {
        for dependency in &package.dependencies {
            let owned = OWNERS.iter().find(|(name, _)| *name == dependency.name);
            let listed = |list: &[(&str, &[&str])]| {
                list.iter().any(|(name, users)| *name == dependency.name && users.contains(&package.name.as_str()))
            };
            let in_tests = dependency.kind == DependencyKind::Development && listed(IN_TESTS);
            let fine = owned.is_none() || listed(OWNERS) || in_tests;
            assert!(fine, "{} needs {}, which belongs to {:?}", package.name, dependency.name, owned);
        }
    }
}

#[test]
fn the_domain_is_pure() {
    let workspace = workspace();
    let domain = workspace.packages.iter().find(|package| package.name.as_str() == "domain").expect("the domain");
    for dependency in &domain.dependencies {
        let impure = ["tokio", "sqlx", "rand", "tracing", "async-trait", "rustix", "reqwest"].contains(&dependency.name.as_str());
        assert!(!impure, "domain needs {}", dependency.name);
    }
    for file in files("crates/domain/src", &[".rs"]) {
        refuse(&file, "reads a clock, randomness or the world", |code| {
            ["::now(", "::new_v4(", "Instant", "SystemTime", "std::fs", "std::env", "std::net", "async fn"]
                .iter()
                .any(|forbidden| code.contains(forbidden))
        });
    }
}

#[test]
fn one_file_of_the_lease_reads_a_clock() {
    let reads = |file: &Text| file.code().any(|(_, code)| words(code).any(|word| word == "clock_gettime"));
    let readers: Vec<_> = files("crates/lease/src", &[".rs"]).into_iter().filter(reads).map(|file| file.path).collect();
    assert_eq!(readers, ["crates/lease/src/clock.rs"]);
    // that none of them names the standard library's clocks is a test of the crate itself: lease/tests/source.rs
}

/// Providers that are called as something of ours, and where formats are read or chosen all the same: the ledger writes the balance
/// of an account in stripes.
const HOMONYMS: &[(&str, &[&str])] = &[("stripe", &["crates/intake/", "crates/settled/"])];

/// The names of a provider are those of its profile: its namespace, unless that is a format of ours or of a rule book.
#[test]
fn no_provider_is_named_in_code() {
    let (mut providers, mut formats) = (BTreeSet::new(), BTreeSet::new());
    for profile in files("config/profiles", &[".toml"]) {
        let value = |key: &str| {
            let line = profile.text.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='));
            line.expect("every profile has it").trim().trim_matches('"').to_lowercase()
        };
        let (format, source) = (value("format"), value("source"));
        if format == "csv" {
            providers.insert(source)
        } else {
            formats.insert(source)
        };
    }
    providers.retain(|provider| !formats.contains(provider));
    assert!(!providers.is_empty(), "the profiles have moved");
    for file in product() {
        let text = file.text.to_lowercase();
        for provider in &providers {
            let homonym = HOMONYMS.iter().find(|(name, _)| name == provider);
            if homonym.is_some_and(|(_, at)| !at.iter().any(|folder| file.path.starts_with(folder))) {
                continue;
            }
            assert!(
                !text.contains(provider.as_str()),
                "{} names {provider}: what is special about it is in its profile",
                file.path
            );
        }
    }
}

/// Whoever could switch the fence off would, on the night it matters.
#[test]
fn nothing_switches_the_fence_off() {
    let says_off = |word: &str| {
        let word = word.to_lowercase();
        let off =
            ["no", "non", "skip", "without", "disable", "disabled", "enable", "enabled", "off", "ignore", "bypass", "unsafe"];
        let parts: Vec<_> = word.split('_').collect();
        let fence = parts.iter().any(|part| part.starts_with("fenc"));
        word.contains("unfenced") || word.contains("nofenc") || (fence && parts.iter().any(|part| off.contains(part)))
    };
    assert!(says_off("no_fencing") && says_off("fencing_enabled") && says_off("UnfencedStore"), "the rule sees what it forbids");
    assert!(!says_off("fence_rejections") && !says_off("is_fenced"), "and only that");
    for file in product() {
        refuse(&file, "switches the fence off", |code| words(code).any(says_off));
    }
    for line in read("config/settled.toml").lines().filter(|line| line.contains(" = ")) {
        assert!(!line.contains("fenc"), "a key of the configuration is about the fence: {line}");
    }
}

/// The arm of a drill that must go wrong needs a worker that lacks one. No command that settles is it, and nothing else can build it.
#[test]
fn only_a_drill_takes_a_protection_away() {
    let takes = |code: &str| words(code).any(|word| word == "Without") || code.contains("without::");
    assert!(takes("use chaos::without::Without;") && !takes("\"without TLS\""), "the rule sees what it forbids, and only that");
    let drills = ["crates/chaos/src/", "crates/settled/src/cli/drill/"];
    let mut takers = 0;
    for file in product() {
        if drills.iter().any(|folder| file.path.starts_with(folder)) {
            takers += usize::from(file.code().any(|(_, code)| takes(code)));
        } else {
            refuse(&file, "takes a protection away", takes);
        }
    }
    assert!(takers >= 3, "what takes a protection away has moved");
}

#[test]
fn contracts_speak_domain() {
    let mut contracts = 0;
    for file in files("crates/lease/src", &[".rs"]).into_iter().chain(files("crates/ledger/src", &[".rs"])) {
        for (at, _) in file.text.match_indices("pub trait ") {
            let body = file.text[at..].split("\n}").next().expect("an end");
            contracts += 1;
            let driver = ["sqlx", "Pool", "PgConnection", "SqliteConnection", "PgRow", "SqliteRow", "Transaction", "Executor"];
            for word in body.lines().map(|line| line.split("//").next().unwrap_or_default()).flat_map(words) {
                assert!(!driver.contains(&word), "{}: {word} in {}", file.path, body.lines().next().unwrap_or_default());
            }
        }
    }
    assert!(contracts >= 6, "only {contracts} contracts: they have moved");
}

#[test]
fn every_dependency_is_used_and_has_a_reason() {
    let workspace = workspace();
    let used: BTreeSet<&str> =
        workspace.packages.iter().flat_map(|package| &package.dependencies).map(|dependency| dependency.name.as_str()).collect();
    let manifest = read("Cargo.toml");
    let section = manifest.split("[workspace.dependencies]\n").nth(1).and_then(|rest| rest.split("\n[").next());
    let mut reason = false;
    for line in section.expect("the dependencies").lines() {
        match line.split_once(" = ") {
            _ if line.starts_with('#') => reason = true,
            Some((name, _)) => {
                assert!(reason, "{name} has no comment that says what it is for");
                assert!(used.contains(name), "{name} is used by no crate");
            }
            None => reason = false,
        }
    }
}

#[test]
fn engines_have_the_same_files() {
    // what only SQLite needs: a queue of its own, and plans that must be asked for; only PostgreSQL has advisory locks
    let own = ["advisory.rs", "cancel.rs", "gate.rs", "plans.rs"];
    let shared = |folder| names(folder).into_iter().filter(|name| !own.contains(&name.as_str())).collect::<Vec<_>>();
    let (postgres, sqlite) = (shared("crates/ledger/src/postgres"), shared("crates/ledger/src/sqlite"));
    assert_eq!(postgres, sqlite, "crates/ledger/src: postgres and sqlite");
    // SQLite's leases are in a file of their own, so that the keeper never waits for a settle transaction
    let mut postgres = names("migrations/postgres");
    postgres.retain(|name| name != "0005_lease.sql");
    assert_eq!(postgres, names("migrations/sqlite"), "migrations: postgres and sqlite");
    assert_eq!(names("migrations/sqlite_lease"), ["0001_lease.sql"]);
}

#[test]
fn files_are_short_and_finished() {
    let mut all = files("crates", &[".rs", ".toml"]);
    all.extend(files("migrations", &[".sql"]));
    for file in &all {
        let lines = file.text.lines().count();
        assert!(lines < 400, "{} has {lines} lines: cut it where a reader would", file.path);
        if !file.path.ends_with("tests/architecture.rs") {
            refuse(file, "is unfinished", |code| {
                ["#[ignore", "todo!(", "unimplemented!(", "dbg!("].iter().any(|forbidden| code.contains(forbidden))
            });
        }
    }
}

/// The path of a program that runs names another file, or none, once cargo has built it anew: `/proc/self/exe` is the running one.
#[test]
fn a_test_that_starts_itself_starts_the_running_file() {
    let mut tests = files("crates", &[".rs"]);
    tests.retain(|file| file.path.contains("/tests/") && !file.path.ends_with("/architecture.rs"));
    for file in &tests {
        refuse(file, "starts what is built, not what runs", |code| words(code).any(|word| word == "current_exe"));
    }
}

#[test]
fn migrations_read_like_prose() {
    for file in files("migrations", &[".sql"]) {
        assert!(file.text.starts_with("-- "), "{} does not begin with what it is", file.path);
    }
}

/// Panics with the place where a line of code is what it must not be.
fn refuse(file: &Text, what: &str, forbidden: impl Fn(&str) -> bool) {
    for (number, code) in file.code() {
        assert!(!forbidden(code), "{}:{number} {what}: {code}", file.path);
    }
}
