//! The repository itself, as the tests about it read it.

#![allow(dead_code, reason = "each of the tests uses a part")]

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
pub(crate) struct Text {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The folder with the workspace's manifest.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("two folders up")
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn is_file(path: &str) -> bool {
    root().join(path).is_file()
}

/// Names in a folder, in order.
pub(crate) fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Every file below `folder` with one of these endings; what tools make is left out.
pub(crate) fn files(folder: &str, endings: &[&str]) -> Vec<Text> {
    let mut found = Vec::new();
    walk(folder, endings, &mut found);
    assert!(!found.is_empty(), "nothing in {folder}: it has moved");
    found
}

fn walk(folder: &str, endings: &[&str], found: &mut Vec<Text>) {
    for name in names(folder) {
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            if name != "target" {
                walk(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(Text { text: read(&path), path });
        }
    }
}

/// Sources of the product: what is compiled when nothing is tested.
pub(crate) fn product() -> Vec<Text> {
    let mut sources = files("crates", &[".rs"]);
    let apart = ["tests", "examples", "fuzz", "benches"];
    sources.retain(|file| !file.path.split('/').any(|part| apart.contains(&part)));
    for file in &mut sources {
        let end = file.text.find("#[cfg(test)]\nmod tests").unwrap_or(file.text.len());
        file.text.truncate(end);
    }
    sources
}

impl Text {
    /// Lines with their numbers, without comments.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(at, line)| (at + 1, before_comment(line)))
    }
}

/// A `//` inside a URL is none.
fn before_comment(line: &str) -> &str {
    let comment = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// Identifiers and words.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}
