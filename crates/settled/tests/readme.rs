//! README.md says what is so: its commands run, its links lead somewhere, the tests it names exist, the demo prints what it shows.

mod repository;

use repository::{is_file, read, root};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const LONGEST: usize = 360;

fn readme() -> String {
    read("README.md")
}

fn settled(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_settled"));
    command.args(arguments).current_dir(folder);
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The blocks of ```sh are one session in an empty folder that has the repository's `config`.
#[test]
fn every_command_of_a_shell_block_succeeds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::os::unix::fs::symlink(root().join("config"), folder.path().join("config")).expect("a link");
    let readme = readme();
    let mut ran = 0;
    for block in readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        for line in block.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<_> = line.split_whitespace().collect();
            assert_eq!(words[0], "settled", "only the program itself can be tried here: {line}");
            let output = settled(folder.path(), &words[1..]);
            assert!(output.status.success(), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
            ran += 1;
        }
    }
    assert!(ran >= 5, "only {ran} commands");
}

/// `settled batch cancel` in a sentence is a command that exists.
#[test]
fn every_command_in_a_sentence_exists() {
    let mut tried = 0;
    for file in ["README.md", "deploy/README.md", "config/profiles/README.md"] {
        for span in read(file).split('`').filter_map(|span| span.strip_prefix("settled ")).filter(|span| !span.contains('\n')) {
            let words = span.split_whitespace().take_while(|word| word.chars().all(|c| c.is_ascii_lowercase()));
            let arguments: Vec<_> = words.chain(["--help"]).collect();
            let output = settled(&root(), &arguments);
            assert!(output.status.success() && arguments.len() > 1, "{file}: settled {span}: {}", text(&output.stderr));
            tried += 1;
        }
    }
    assert!(tried >= 5, "only {tried} commands");
}

#[test]
fn every_cargo_xtask_exists() {
    for span in readme().split('`').filter_map(|span| span.strip_prefix("cargo xtask ")) {
        let name = span.split_whitespace().next().unwrap_or_default();
        let exists =
            [format!("{name}.rs"), format!("{name}/mod.rs")].iter().any(|file| is_file(&format!("crates/xtask/src/{file}")));
        assert!(name == "…" || exists, "cargo xtask {name}");
    }
}

#[test]
fn every_link_leads_to_a_file() {
    for file in ["README.md", "deploy/README.md", "config/profiles/README.md"] {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in read(file).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = root().join(folder).join(link);
            assert!(link.starts_with("https://") || target.exists(), "{file}: {link}");
        }
    }
}

#[test]
fn every_test_that_proves_a_pattern_exists() {
    let readme = readme();
    let mut named = 0;
    for row in readme.lines().filter(|line| line.starts_with("| [") && line.contains("`crates/")) {
        let proof = row.trim_end_matches(" |").rsplit(" | ").next().expect("a last cell");
        let [_, file, _, test, _] = proof.split('`').collect::<Vec<_>>()[..] else { panic!("no file and test in {proof}") };
        assert!(read(file).contains(test), "{file} has no {test}");
        named += 1;
    }
    assert!(named >= 20, "only {named} patterns");
}

/// The block of ```rust is the example of the worker's documentation, which is compiled with its tests, less the lines it hides.
#[test]
fn the_own_job_that_is_shown_is_compiled() {
    let readme = readme();
    let shown = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the job");
    let source = read("crates/worker/src/job.rs");
    let lines = source.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    let example = lines.skip_while(|line| *line != "```").skip(1).take_while(|line| *line != "```");
    let compiled: Vec<_> = example.filter(|line| !line.starts_with("# ")).collect();
    assert_eq!(shown.lines().collect::<Vec<_>>(), compiled);
}

/// Times, counts, units and fences differ from night to night; the story does not.
#[test]
fn the_demo_tells_what_is_shown() {
    let begun = Instant::now();
    let output = settled(&root(), &["demo"]);
    let took = begun.elapsed();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(took < Duration::from_secs(30), "{took:?} is more than half a minute");
    let told: Vec<_> = text(&output.stdout).lines().map(without_figures).collect();
    let readme = readme();
    let shown = readme.split("```text\n$ cargo xtask demo\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the demo");
    for line in shown.lines().filter(|line| line.trim() != "…") {
        assert!(told.contains(&without_figures(line)), "{line:?} is not in\n{}", told.join("\n"));
    }
}

fn without_figures(line: &str) -> String {
    let masked: String = line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let mut masked = masked.split_whitespace().collect::<Vec<_>>().join(" ");
    while masked.contains("00") {
        masked = masked.replace("00", "0");
    }
    masked
}

#[test]
fn it_is_short_and_promises_no_more_than_it_keeps() {
    let readme = readme();
    let lines = readme.lines().count();
    assert!(lines <= LONGEST, "{lines} lines: nobody reads that");
    assert!(!readme.to_lowercase().contains("exactly once") && !readme.to_lowercase().contains("exactly-once"));
    for line in readme.lines().filter(|line| !line.starts_with('|')) {
        assert!(line.chars().count() <= 140, "a long line: {line}");
    }
}

/// What the services of leases declare, and their conformance tests see, is what the table shows.
#[test]
fn the_table_of_lock_services_is_theirs() {
    let table = lease::capability::matrix(lease::SERVICES);
    assert!(readme().contains(&table), "README.md must have this table:\n{table}");
}

/// Each deployment shape, as the program itself reads it.
#[test]
fn every_deployment_shape_is_read() {
    for name in [
        "settled.toml",
        "sqlite-one-host.toml",
        "postgres.toml",
        "postgres-row-lock.toml",
        "postgres-etcd.toml",
        "postgres-redis.toml",
        "postgres-staging-chaos.toml",
    ] {
        let file = root().join("config").join(name);
        let output = settled(&root(), &["--config", file.to_str().expect("UTF-8"), "config", "print"]);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let url = fs::read_to_string(&file).expect("a file").lines().find(|line| line.starts_with("url")).map(str::to_owned);
        let scheme = url.as_deref().and_then(|url| url.split('"').nth(1)?.split(':').next().map(str::to_owned)).expect("a URL");
        assert!(text(&output.stdout).contains(&format!("url = \"{scheme}:")), "{name}");
    }
}
