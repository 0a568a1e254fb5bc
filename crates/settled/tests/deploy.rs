//! The files of deploy/ agree with each other and with the program: metrics, alerts and their paragraphs, versions, timeouts, the image.
//! That each is well-formed is checked with the tools of its trade (.ci/deploy); privileges are tried in e2e/roles.rs.

mod repository;

use repository::{is_file, product, read, root, words};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Where the program names its metrics.
const NAMED_IN: [&str; 4] = [
    "crates/settled/src/serve/metrics.rs",
    "crates/worker/src/metric.rs",
    "crates/lease/src/keeper.rs",
    "crates/chaos/src/mode/probe.rs",
];

/// Every metric of the program, and whether it is a histogram: seconds that a worker or a keeper measures.
fn metrics() -> BTreeMap<String, bool> {
    let mut metrics = BTreeMap::new();
    for file in NAMED_IN {
        for name in read(file)
            .split('"')
            .filter(|text| text.starts_with("settled_") && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        {
            metrics.insert(name.to_owned(), !file.contains("/settled/") && name.ends_with("_seconds"));
        }
    }
    assert!(metrics.len() > 20, "{metrics:?}");
    metrics
}

const RULES: &str = "deploy/prometheus/settled.rules.yaml";
const RULES_TEST: &str = "deploy/prometheus/settled.rules.test.yaml";
const BOARD: &str = "deploy/grafana/settled.json";
const README: &str = "deploy/README.md";

/// Names of metrics in a text, as the program has them: a histogram is asked for by its parts.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let metrics = metrics();
    let histogram = |name: &str| metrics.get(name) == Some(&true);
    let whole = |word: &str| {
        let part = ["_bucket", "_sum", "_count"].iter().find_map(|part| word.strip_suffix(part));
        part.filter(|name| histogram(name)).unwrap_or(word).to_owned()
    };
    let roles = ["settled_owner", "settled_runtime", "settled_auditor"];
    words(text).filter(|word| word.starts_with("settled_") && !word.ends_with('_') && !roles.contains(word)).map(whole).collect()
}

#[test]
fn every_metric_that_is_named_exists() {
    for file in [RULES, RULES_TEST, BOARD, README] {
        for name in metrics_in(&read(file)) {
            assert!(metrics().contains_key(&name), "{file} asks for {name}, which no instance has");
        }
    }
}

#[test]
fn every_metric_is_looked_at() {
    let seen = &metrics_in(&read(RULES)) | &metrics_in(&read(BOARD));
    for name in metrics().keys() {
        assert!(seen.contains(name), "{name} is on no board and in no alert");
    }
}

/// Name of each alert, with the lines that belong to it.
fn alerts() -> BTreeMap<String, String> {
    let rules = read(RULES);
    let blocks = rules.split("\n      - alert: ").skip(1);
    let alerts: BTreeMap<_, _> = blocks
        .map(|block| {
            let name = block.lines().next().unwrap_or_default().to_owned();
            (name, block.to_owned())
        })
        .collect();
    assert!(alerts.len() >= 10, "only {} alerts: their form has changed", alerts.len());
    alerts
}

/// As GitHub makes it of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-');
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn every_alert_has_its_paragraph() {
    let readme = read(README);
    let headings = |mark: &str| readme.lines().filter_map(|line| line.strip_prefix(mark).map(str::to_owned)).collect::<Vec<_>>();
    let alerts = alerts();
    for (name, rule) in &alerts {
        assert!(rule.contains("severity: critical") || rule.contains("severity: warning"), "{name}: how severe is it?");
        assert!(rule.contains("summary: "), "{name} does not say what is wrong");
        let runbook = rule.lines().find_map(|line| line.trim().strip_prefix("runbook: "));
        let (file, place) =
            runbook.and_then(|runbook| runbook.split_once('#')).unwrap_or_else(|| panic!("{name} has no runbook"));
        assert!(is_file(file), "{name}: {file}");
        assert!(headings("### ").iter().any(|heading| anchor(heading) == place), "{name}: no paragraph {place} in {file}");
        assert_eq!(place, anchor(name), "{name} names the paragraph of another");
    }
    for heading in headings("### ") {
        assert!(alerts.contains_key(&heading), "{README} has a paragraph on {heading}, which is no alert");
    }
}

/// promtool runs them (.ci/deploy); here: that none was left out.
#[test]
fn every_alert_is_tried_both_ways() {
    let tests = read(RULES_TEST);
    for name in alerts().keys() {
        let at = |said: &str| tests.split(said).skip(1).map(|rest| rest.trim_start_matches([',', '\n', ' '])).collect::<Vec<_>>();
        let cases = at(&format!("alertname: {name}"));
        assert!(cases.iter().any(|rest| rest.starts_with("exp_alerts: []")), "no case in which {name} is silent");
        assert!(cases.iter().any(|rest| rest.starts_with("exp_alerts:\n")), "no case in which {name} fires");
    }
}

#[test]
fn the_board_has_its_panels_side_by_side() {
    let board: Value = serde_json::from_str(&read(BOARD)).expect("JSON");
    let panels = board["panels"].as_array().expect("panels");
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title} has the id of another");
        assert!(["stat", "table", "timeseries"].contains(&panel["type"].as_str().expect("a type")), "{title}: {}", panel["type"]);
        assert!(panel["description"].as_str().is_some_and(|text| !text.is_empty()), "{title} does not say what it shows");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title} is bound to one Prometheus");
        let place = |key| panel["gridPos"][key].as_u64().expect("a place");
        for (x, y) in (0..place("w")).flat_map(|x| (0..place("h")).map(move |y| (x, y))) {
            let (x, y) = (place("x") + x, place("y") + y);
            assert!(x < 24 && cells.insert((x, y)), "{title} is over another panel, or over the edge");
        }
        for target in panel["targets"].as_array().expect("queries") {
            let query = target["expr"].as_str().expect("a query");
            assert!(query.contains("job=\"$job\""), "{title} mixes ledgers: {query}");
        }
    }
    assert!(panels.len() >= 10);
}

/// One version everywhere, that of the program.
#[test]
fn what_is_deployed_is_this_version() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, said) in [
        ("deploy/kubernetes/kustomization.yaml", format!("newTag: {version}\n")),
        ("deploy/compose.yaml", format!("image: settled:{version}\n")),
        ("deploy/Dockerfile", format!("--tag settled:{version} ")),
    ] {
        assert!(read(file).contains(&said), "{file} does not say {said:?}");
    }
}

/// A stop waits for a settle transaction, and a little longer.
#[test]
fn a_stop_has_time_for_a_transaction() {
    let config: toml::Table = read("deploy/settled.toml").parse().expect("TOML");
    let ttl_ms = config["lease"]["ttl_ms"].as_integer().expect("a number");
    for (file, key) in [
        ("deploy/compose.yaml", "    stop_grace_period: "),
        ("deploy/kubernetes/deployment.yaml", "terminationGracePeriodSeconds: "),
        ("deploy/systemd/settled@.service", "TimeoutStopSec="),
    ] {
        let text = read(file);
        let values =
            text.split(key).skip(1).filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<i64>().ok());
        // the database of compose.yaml has minutes
        let seconds = values.filter(|value| *value > 2).collect::<Vec<_>>();
        assert_eq!(seconds, [45], "{file}: README.md says 45 s");
        assert!(seconds[0] * 1_000 > ttl_ms / 2 + 10_000, "{file}: a transaction may take {} ms", ttl_ms / 2);
    }
}

/// The staging set-up is the delivered one with chaos, and nobody kills what is only frozen.
#[test]
fn staging_is_production_with_chaos() {
    let parse = |file: &str| read(file).parse::<toml::Table>().expect("TOML");
    let (mut staging, production) = (parse("deploy/staging/settled.toml"), parse("deploy/settled.toml"));
    let chaos = staging.remove("chaos").expect("its faults");
    assert_eq!(staging.remove("environment"), Some("staging".into()));
    assert_eq!(staging, production, "everything else is the same");
    let faults = chaos["fault"].as_array().expect("a list");
    let of = |what: &str, key: &str| {
        faults.iter().filter(|fault| fault["what"].as_str() == Some(what)).filter_map(|fault| fault[key].as_integer()).max()
    };
    let ttl_ms = production["lease"]["ttl_ms"].as_integer().expect("a number");
    let longest_ms = of("freeze", "for_ms").expect("a freeze");
    assert!(longest_ms > ttl_ms, "shorter than the lease, a freeze shows nothing");
    let patch = read("deploy/staging/deployment.yaml");
    let number = |key: &str| -> i64 {
        let (_, rest) = patch.split_once(key).unwrap_or_else(|| panic!("no {key}"));
        rest.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok()).expect("a number")
    };
    assert!(number("periodSeconds:") * number("failureThreshold:") * 1_000 > longest_ms * 2, "liveness outlasts two freezes");
    let mut command = Command::new(env!("CARGO_BIN_EXE_settled"));
    command.args(["--config", "deploy/staging/settled.toml", "config", "print"]).current_dir(root());
    let printed = command.output().expect("the program starts");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    assert!(read("deploy/staging/compose.yaml").contains("file: ./staging/settled.toml"));
}

/// Kustomize reads nothing outside of its folder, hence two files; and one configuration.
#[test]
fn every_shape_has_the_same_configuration() {
    assert_eq!(read("deploy/settled.toml"), read("deploy/kubernetes/settled.toml"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_settled"));
    command.args(["--config", "deploy/settled.toml", "config", "print"]).current_dir(root());
    let printed = command.output().expect("the program starts");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
}

/// Whatever the sources take in from outside of crates/ is sent to Docker, and so is what the Dockerfile copies.
#[test]
fn the_image_is_sent_what_it_is_built_from() {
    let ignore = read("deploy/Dockerfile.dockerignore");
    let sent: Vec<_> = ignore.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for path in &sent {
        assert!(root().join(path).exists(), "{path} is not there any more");
    }
    let is_sent = |path: &str| sent.iter().any(|sent| path == *sent || path.starts_with(&format!("{sent}/")));
    let mut taken = 0;
    for file in product() {
        for path in file.text.split('"').filter(|text| text.starts_with("../../") && !text.contains(['\n', ' '])) {
            let path = path.trim_start_matches("../");
            assert!(is_sent(path), "{} takes in {path}, which is not sent to Docker", file.path);
            taken += 1;
        }
    }
    assert!(taken >= 3, "the sources take in {taken} places: the rule does not see them");
    let dockerfile = read("deploy/Dockerfile");
    for copied in dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .filter(|line| line.contains('/') && !line.starts_with("--from"))
    {
        let path = copied.split(' ').next().unwrap_or_default();
        assert!(is_sent(path), "the Dockerfile copies {path}, which is not sent");
    }
}

/// The rights that a user of Redis needs are tried by the conformance tests as the head of `redis.rs` has them.
#[test]
fn the_rights_in_redis_are_those_that_are_tried() {
    let rights = |text: &str| -> Vec<String> {
        let (_, rest) = text.split_once("`ACL SETUSER settled on >… ").expect("the rights");
        let (rights, _) = rest.split_once('`').expect("their end");
        rights.split_whitespace().filter(|word| *word != "//!").map(str::to_owned).collect()
    };
    assert_eq!(rights(&read(README)), rights(&read("crates/lease/src/redis.rs")));
}
