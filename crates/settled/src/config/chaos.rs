//! `[chaos]`: faults that an instance does to itself, for staging; and where drills have it write down what it does.

use super::Guard;
use chaos::mode::{Probability, Rule, What, When};
use domain::step::Step;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The environment that nobody has named otherwise.
pub(super) const PRODUCTION: &str = "production";
/// What somebody has to write who wants faults there.
const ACCEPTED: &str = "I accept that instances freeze and die here";
/// A longer fault looks like an instance that is gone for good.
const LONGEST_MS: u64 = 3_600_000;

/// Chaos, for staging and drills.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Chaos {
    /// Unset: a fresh one at every start, so that instances of one configuration differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_production: Option<String>,
    /// Where the process writes down its requests, for the judge of a drill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) fault: Vec<Fault>,
}

/// One fault. Either `nth` or `probability`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) step: Step,
    pub(crate) what: Word,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) for_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nth: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probability: Option<Probability>,
}

/// The words of `chaos.fault.what`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Word {
    Freeze,
    Kill,
    Delay,
    Cut,
}

/// By whichever of its usual names.
fn is_production(environment: &str) -> bool {
    let name = environment.trim().to_lowercase();
    name.starts_with("prod") || name == "live"
}

impl Chaos {
    /// The faults that were checked; what is wrong was told before.
    pub(crate) fn rules(&self) -> Vec<Rule> {
        self.fault.iter().filter_map(|fault| fault.rule().ok()).collect()
    }

    /// A sentence for each thing that does not go together.
    pub(super) fn wrong(&self, environment: &str, guard: Guard) -> Vec<String> {
        let mut wrong = Vec::new();
        if environment.trim().is_empty() {
            wrong
                .push(format!("environment is empty and must say which one this is, for instance {PRODUCTION:?} or \"staging\""));
        }
        let is_production = is_production(environment);
        if is_production && !self.fault.is_empty() && self.in_production.as_deref() != Some(ACCEPTED) {
            wrong.push(format!(
                "chaos.fault makes instances freeze and die, and environment is {environment:?}: say which one it is (environment = \"staging\"), or take the faults out, or accept them with chaos.in_production = {ACCEPTED:?}"
            ));
        }
        for (fault, number) in self.fault.iter().zip(1..) {
            let of = |sentence| format!("chaos.fault {number} ({} at {}): {sentence}", fault.what.as_str(), fault.step);
            wrong.extend(fault.rule().err().map(of));
            wrong.extend(fault.needs_leases(guard).map(of));
        }
        wrong
    }
}

impl Word {
    fn as_str(self) -> &'static str {
        match self {
            Word::Freeze => "freeze",
            Word::Kill => "kill",
            Word::Delay => "delay",
            Word::Cut => "cut",
        }
    }
}

impl Fault {
    fn rule(&self) -> Result<Rule, String> {
        let what = match self.what {
            Word::Freeze => What::Freeze(self.span()?),
            Word::Delay => What::Delay(self.span()?),
            Word::Cut => What::Cut(self.span()?),
            Word::Kill if self.for_ms.is_some() => return Err("a kill lasts; take for_ms out".to_owned()),
            Word::Kill => What::Kill,
        };
        let when = match (self.nth, self.probability) {
            (Some(0), None) => return Err("nth is 0 and must be at least 1".to_owned()),
            (Some(nth), None) => When::Nth(nth),
            (None, Some(probability)) => When::Chance(probability),
            (None, None) => return Err("say when: either nth = 1 (once), or probability = \"0.02\" (each time)".to_owned()),
            (Some(_), Some(_)) => return Err("nth and probability exclude each other; take one".to_owned()),
        };
        Ok(Rule { step: self.step, what, when, batch: None })
    }

    fn span(&self) -> Result<Duration, String> {
        match self.for_ms {
            None => Err("say for how long: for_ms".to_owned()),
            Some(ms) if (1..=LONGEST_MS).contains(&ms) => Ok(Duration::from_millis(ms)),
            Some(ms) => Err(format!("for_ms is {ms} and must be between 1 and {LONGEST_MS}")),
        }
    }

    fn needs_leases(&self, guard: Guard) -> Option<String> {
        let of_leases = [Step::LeaseAcquired, Step::OwnershipProven, Step::FenceRegistered, Step::BeforeRelease];
        let needs = match (guard, self.what) {
            (Guard::Lease, _) => return None,
            (_, Word::Cut) => "a way to a lock service",
            _ if of_leases.contains(&self.step) => "a lease",
            _ => return None,
        };
        Some(format!("it needs {needs}, and worker.guard takes no leases; set worker.guard = \"lease\" or take the fault out"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn told(text: &str) -> String {
        config(text).check().expect_err(text).to_string()
    }

    const KILL: &str = "[[chaos.fault]]\nstep = \"Settled\"\nwhat = \"kill\"\nnth = 1\n";

    #[test]
    fn faults_in_production_need_to_be_accepted_in_words() {
        for environment in [
            "",
            "environment = \"production\"\n",
            "environment = \" Production\"\n",
            "environment = \"prod-eu\"\n",
            "environment = \"LIVE\"\n",
        ] {
            let refused = told(&format!("{environment}{KILL}"));
            assert!(refused.contains("environment = \"staging\"") && refused.contains(ACCEPTED), "{refused}");
            assert!(told(&format!("{environment}[chaos]\nin_production = \"yes\"\n{KILL}")).contains(ACCEPTED));
            assert!(config(&format!("{environment}[chaos]\nin_production = \"{ACCEPTED}\"\n{KILL}")).check().is_ok());
            assert!(config(environment).check().is_ok(), "no faults");
        }
        let staging = config(&format!("environment = \"staging\"\n{KILL}"));
        assert!(staging.check().is_ok());
        assert_eq!(staging.chaos.rules(), [Rule { step: Step::Settled, what: What::Kill, when: When::Nth(1), batch: None }]);
        assert!(told("environment = \" \"").contains("environment is empty"));
    }

    #[test]
    fn what_does_not_go_together_is_a_sentence_each() {
        for (fault, sentence) in [
            ("what = \"kill\"\nnth = 1\nfor_ms = 5", "a kill lasts"),
            ("what = \"kill\"", "say when"),
            ("what = \"kill\"\nnth = 0", "nth is 0"),
            ("what = \"kill\"\nnth = 1\nprobability = \"0.5\"", "exclude each other"),
            ("what = \"freeze\"\nnth = 1", "say for how long"),
            ("what = \"delay\"\nnth = 1\nfor_ms = 0", "for_ms is 0"),
            ("what = \"cut\"\nnth = 1\nfor_ms = 3600001", "between 1 and 3600000"),
        ] {
            let told = told(&format!("environment = \"staging\"\n{KILL}[[chaos.fault]]\nstep = \"BeforeSettleTx\"\n{fault}"));
            assert!(told.starts_with("chaos.fault 2 (") && told.contains(sentence), "{fault}: {told}");
        }
    }

    #[test]
    fn a_guard_without_leases_has_nothing_to_cut() {
        let with = |what, step| {
            format!(
                "environment = \"staging\"\n[worker]\nguard = \"row-lock\"\n[[chaos.fault]]\nnth = 1\n{what}\nstep = \"{step}\""
            )
        };
        assert!(told(&with("what = \"cut\"\nfor_ms = 5", "Settled")).contains("a way to a lock service"));
        assert!(told(&with("what = \"kill\"", "FenceRegistered")).contains("it needs a lease"));
        assert!(config(&with("what = \"kill\"", "Settled")).check().is_ok());
    }

    #[test]
    fn a_wrong_word_is_told_the_right_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bad.toml");
        for (fault, right) in [
            ("step = \"Settled\"\nwhat = \"melt\"\nnth = 1", "freeze, kill, delay or cut"),
            ("step = \"Later\"\nwhat = \"kill\"\nnth = 1", "BeforeSettleTx"),
            ("step = \"Settled\"\nwhat = \"kill\"\nprobability = \"often\"", "above 0 and at most 1"),
            ("step = \"Settled\"\nwhat = \"kill\"\nnth = 1\ntwice = true", "twice"),
        ] {
            std::fs::write(&file, format!("environment = \"staging\"\n[[chaos.fault]]\n{fault}")).expect("a file");
            let told = format!("{:#}", Config::load(Some(&file)).expect_err("no such word"));
            assert!(told.contains(right), "{told}");
        }
    }

    #[test]
    fn the_example_fault_shows_every_key() {
        let example = include_str!("../../../../config/settled.toml");
        let section = example.split_once("# [[chaos.fault]]").expect("a fault").1;
        let is_key = |line: &&str| line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        let keys: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_key).collect();
        let shown: Fault = toml::from_str(&keys.join("\n")).expect("a fault");
        shown.rule().expect("and one that can be done");
        let every = Fault { nth: Some(1), ..shown };
        for key in toml::to_string(&every).expect("TOML").lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key) {
            assert!(section.contains(&format!("{key} = ")), "{key} is missing");
        }
    }
}
