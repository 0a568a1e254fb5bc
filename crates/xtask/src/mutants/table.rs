//! `mutants.toml`.

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::look::Look;

/// All of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    mutation: Vec<Mutation>,
}

/// One way to break the product.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutation {
    pub(super) name: String,
    /// In words.
    pub(super) breaks: String,
    /// From the root.
    pub(super) file: String,
    /// Is there exactly once.
    pub(super) find: String,
    pub(super) replace: String,
    /// What must turn red.
    pub(super) seen_by: Vec<Look>,
    /// The faulty lock service without which it would not matter.
    pub(super) paired_with: Option<String>,
}

impl Table {
    pub(super) fn read() -> anyhow::Result<Self> {
        let table: Self = toml::from_str(include_str!("mutants.toml")).context("mutants.toml")?;
        for mutation in &table.mutation {
            ensure!(!mutation.seen_by.is_empty(), "mutants.toml: nothing is to see {}", mutation.name);
        }
        Ok(table)
    }

    /// Those of these names; all where none is given.
    pub(super) fn chosen(self, names: &[String]) -> anyhow::Result<Vec<Mutation>> {
        for name in names {
            let known = self.mutation.iter().any(|mutation| mutation.name == *name);
            ensure!(known, "there is no mutation {name:?} in crates/xtask/src/mutants/mutants.toml");
        }
        let wanted = |mutation: &Mutation| names.is_empty() || names.contains(&mutation.name);
        Ok(self.mutation.into_iter().filter(wanted).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::servers_dir;

    /// The code moves on; a mutation that fits nowhere any more is noticed with the change, not by night.
    #[test]
    fn every_mutation_fits() {
        let root = servers_dir();
        let root = root.ancestors().nth(2).expect("target/servers is two folders down");
        let table = Table::read().expect("the table");
        assert!(table.mutation.len() >= 12, "only {}", table.mutation.len());
        for mutation in &table.mutation {
            let text = std::fs::read_to_string(root.join(&mutation.file)).expect("a file of the product");
            assert_eq!(text.matches(&mutation.find).count(), 1, "{}: what it looks for in {}", mutation.name, mutation.file);
        }
    }
}
