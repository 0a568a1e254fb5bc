//! Each pattern of README.md is one file and those that its head names: copied into an empty crate, they compile.
//!
//! A head says ``Needs `ids.rs`, `domain::item` and its own folder.`` or `Needs nothing else.`; what those need is copied as well. The
//! crates are members of one workspace with this repository's manifest and lock file, so that one `cargo check` does for all of them.

mod repository;

use repository::{is_file, read};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A row of the table.
struct Pattern {
    file: String,
    /// The files that the row names, by their last names.
    with: Vec<String>,
}

#[test]
fn each_pattern_compiles_with_what_its_head_names() {
    let patterns = patterns();
    assert!(patterns.len() >= 10, "only {} patterns in README.md", patterns.len());
    let workspace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("patterns");
    let _ = fs::remove_dir_all(&workspace);
    for file in ["Cargo.toml", "Cargo.lock"] {
        write(&workspace.join(file), &read(file));
    }
    for pattern in &patterns {
        copy(pattern, &workspace);
    }
    check(&workspace);
    assert_same_versions(&workspace);
}

/// The rows of "Patterns to copy": a link to a file, what it prevents, what to take along, what proves it.
fn patterns() -> Vec<Pattern> {
    let readme = read("README.md");
    let table = readme.split("## Patterns to copy").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the table");
    let mut patterns = Vec::new();
    for cells in table.lines().map(|line| line.split('|').collect::<Vec<_>>()).filter(|cells| cells.len() == 6) {
        let Some(link) = cells[1].split("](").nth(1).and_then(|link| link.split(')').next()) else { continue };
        patterns.push(Pattern { file: link.to_owned(), with: code_spans(cells[3]) });
    }
    patterns
}

/// What a head says that a file needs: other sources, and files that are read while it is compiled.
fn needs(path: &str) -> (Vec<String>, Vec<String>) {
    let text = read(path);
    let head: Vec<_> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let head = head.join(" ");
    let sentence = head.split("Needs ").nth(1).unwrap_or_else(|| panic!("{path}: its head does not say what it needs"));
    let sentence = sentence.split(". ").next().unwrap_or(sentence);
    let folder = path.rsplit_once('/').expect("a folder").0;
    let (mut sources, mut others) = (Vec::new(), Vec::new());
    for name in code_spans(sentence) {
        match name.strip_prefix("domain::") {
            Some(module) => sources.push(format!("crates/domain/src/{module}.rs")),
            None if name.starts_with("migrations/") => others.push(name),
            None => sources.push(format!("{folder}/{name}")),
        }
    }
    if sentence.contains("its own folder") {
        let own = path.strip_suffix(".rs").expect("a source");
        others.extend(repository::files(own, &[".rs"]).into_iter().map(|file| file.path));
    }
    assert!(!sources.is_empty() || sentence.starts_with("nothing else"), "{path}: {sentence:?} names no file");
    for source in &sources {
        assert!(is_file(source), "{path} needs {source}, which is not there");
    }
    (sources, others)
}

fn code_spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The pattern and all it needs as a crate of its own.
fn copy(pattern: &Pattern, workspace: &Path) {
    let name = crate_name(&pattern.file);
    let folder = workspace.join("crates").join(&name);
    let (mut modules, mut code, mut waiting) = (BTreeMap::new(), String::new(), vec![pattern.file.clone()]);
    let last_name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let named: Vec<_> = needs(&pattern.file).0.iter().map(last_name).collect();
    assert_eq!(pattern.with, named, "{}: what README.md takes along, and what the head names", pattern.file);
    while let Some(path) = waiting.pop() {
        let module = last_name(&path).trim_end_matches(".rs").to_owned();
        if let Some(other) = modules.insert(module.clone(), path.clone()) {
            assert_eq!(other, path, "{name}: two files of one name");
            continue;
        }
        code.push_str(&read(&path));
        write(&folder.join(format!("src/{module}.rs")), &read(&path));
        let (sources, others) = needs(&path);
        waiting.extend(sources);
        for other in others {
            copy_other(&other, &path, &folder, workspace, &mut code);
        }
    }
    // within the workspace those files find each other as `crate::…` and, across crates, as `domain::…`
    let list = modules.keys().map(|module| format!("pub mod {module};\npub use crate::{module}::*;\n")).collect::<String>();
    write(&folder.join("src/lib.rs"), &format!("#![allow(warnings)]\nextern crate self as domain;\n{list}"));
    let package = format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition.workspace = true\n\n[dependencies]\n");
    write(&folder.join("Cargo.toml"), &(package + &dependencies(&code)));
}

fn copy_other(other: &str, of: &str, folder: &Path, workspace: &Path, code: &mut String) {
    if other.starts_with("migrations/") {
        let files = if is_file(other) {
            vec![other.to_owned()]
        } else {
            repository::files(other.trim_end_matches('/'), &[".sql"]).into_iter().map(|file| file.path).collect()
        };
        files.iter().for_each(|file| write(&workspace.join(file), &read(file)));
        return;
    }
    let beside = of.rsplit_once('/').expect("a folder").0;
    let inside = other.strip_prefix(beside).expect("a file of its own folder");
    code.push_str(&read(other));
    write(&folder.join(format!("src{inside}")), &read(other));
}

/// `crates/lease/src/keeper.rs` is `lease-keeper`.
fn crate_name(file: &str) -> String {
    let parts: Vec<_> = file.trim_end_matches(".rs").split('/').filter(|part| !["crates", "src"].contains(part)).collect();
    parts.join("-")
}

/// Those of the workspace that the code names.
fn dependencies(code: &str) -> String {
    let manifest = read("Cargo.toml");
    let section = manifest.split("[workspace.dependencies]\n").nth(1).and_then(|rest| rest.split("\n[").next()).expect("it");
    let names = section
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .filter(|(_, what)| !what.contains("path ="))
        .map(|(name, _)| name);
    let code: Vec<_> = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let named = |name: &str| {
        let path = format!("{}::", name.replace('-', "_"));
        let begins = |line: &str, at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        code.iter().any(|line| line.match_indices(&path).any(|(at, _)| begins(line, at)))
    };
    names.filter(|name| named(name)).map(|name| format!("{name}.workspace = true\n")).collect()
}

fn check(workspace: &Path) {
    let target: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").to_owned();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // build scripts of others look at what cargo says of this package, and would be built anew, here and there in turn
    let of_this_package =
        |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "OUT_DIR"].iter().any(|p| name.starts_with(p));
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| of_this_package(name)) {
        command.env_remove(name);
    }
    // what the linter has checked before is used again
    command.args(["check", "--workspace", "--offline", "--target-dir"]).arg(target).current_dir(workspace);
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Members come and go in a lock file; versions must not.
fn assert_same_versions(workspace: &Path) {
    let locked = |text: &str| -> Vec<String> {
        let packages = text.split("[[package]]").filter(|package| package.contains("\nchecksum = "));
        packages.map(|package| package.lines().take(3).collect::<Vec<_>>().join(" ")).collect()
    };
    let ours = locked(&read("Cargo.lock"));
    let used = locked(&fs::read_to_string(workspace.join("Cargo.lock")).expect("a lock file"));
    assert!(!used.is_empty());
    for package in used {
        assert!(ours.contains(&package), "{package} is not in Cargo.lock");
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
