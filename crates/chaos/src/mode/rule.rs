//! What is done to a process, at which step, and when: one form for the configuration and for the command line of drills and tests.

use domain::ids::BatchId;
use domain::step::{Step, UnknownStep};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// SIGSTOP, and SIGCONT after so long.
    Freeze(Duration),
    /// SIGSTOP; whoever asked for it wakes the process, or nobody does.
    Stop,
    /// SIGKILL.
    Kill,
    /// The thread sleeps for so long; the rest of the process goes on, renewals too.
    Delay(Duration),
    /// The connection to the lock service is dropped, and for so long nothing reaches it.
    Cut(Duration),
}

impl What {
    /// The word of the configuration, of the metric and of histories.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            What::Freeze(_) => "freeze",
            What::Stop => "stop",
            What::Kill => "kill",
            What::Delay(_) => "delay",
            What::Cut(_) => "cut",
        }
    }

    /// Whether it is done by a signal, which an init process does not get.
    #[must_use]
    pub fn is_a_signal(self) -> bool {
        matches!(self, What::Freeze(_) | What::Stop | What::Kill)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            What::Freeze(span) | What::Delay(span) | What::Cut(span) => write!(f, " for {} ms", span.as_millis()),
            What::Stop | What::Kill => Ok(()),
        }
    }
}

/// When it is done, of all the times that its step is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Once in the life of a process: the nth time, from 1.
    Nth(u64),
    /// Each time by chance.
    Chance(Probability),
}

/// A probability in millionths, above 0 and at most 1.
///
/// It is written as a decimal with at most six places, `"0.02"`, and read digit by digit: a binary fraction would be another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Probability(u32);

impl Probability {
    /// The denominator.
    pub const ONE: u32 = 1_000_000;

    /// In millionths.
    #[must_use]
    pub fn per_million(self) -> u32 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || RuleError::Probability(text.to_owned());
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || places.len() > 6 || !digits(whole) || !digits(places) || text.ends_with('.') {
            return Err(wrong());
        }
        let whole: u32 = whole.parse().map_err(|_| wrong())?;
        let places: u32 = format!("{places:0<6}").parse().map_err(|_| wrong())?;
        let millionths = whole.checked_mul(Self::ONE).and_then(|whole| whole.checked_add(places));
        millionths.filter(|millionths| (1..=Self::ONE).contains(millionths)).map(Probability).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Probability {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Probability> for String {
    fn from(probability: Probability) -> Self {
        probability.to_string()
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / Self::ONE, self.0 % Self::ONE);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Where in the protocol.
    pub step: Step,
    /// What is done there.
    pub what: What,
    /// When.
    pub when: When,
    /// Only the times with this batch in hand count. Only on the command line: batches of a night have no names beforehand.
    pub batch: Option<BatchId>,
}

impl Rule {
    /// Whether this time counts.
    pub(super) fn is_about(&self, step: Step, batches: &[BatchId]) -> bool {
        step == self.step && self.batch.is_none_or(|batch| batches.contains(&batch))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.what, self.step)?;
        if let Some(BatchId(batch)) = self.batch {
            write!(f, " with batch {batch} in hand")?;
        }
        match self.when {
            When::Nth(nth) => write!(f, ", time {nth}"),
            When::Chance(probability) => write!(f, ", with probability {probability}"),
        }
    }
}

/// `STEP=stop` or `STEP=kill`; `STEP=stop@3` for the third time the step is reached; `STEP=kill#7` only with batch 7 in hand.
impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (step, what) = text.split_once('=').ok_or(RuleError::Form)?;
        let (what, batch) = what.split_once('#').map_or((what, None), |(what, batch)| (what, Some(batch)));
        let (what, nth) = what.split_once('@').unwrap_or((what, "1"));
        let what = match what {
            "stop" => What::Stop,
            "kill" => What::Kill,
            other => return Err(RuleError::Signal(other.to_owned())),
        };
        let batch = batch.map(|batch| batch.parse().map(BatchId).map_err(|_| RuleError::Batch(batch.to_owned()))).transpose()?;
        let nth = nth.parse().ok().filter(|nth| *nth > 0).ok_or_else(|| RuleError::Nth(nth.to_owned()))?;
        Ok(Rule { step: step.parse()?, what, when: When::Nth(nth), batch })
    }
}

/// What is no rule, and what would be one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// On the command line.
    #[error("expects STEP=stop or STEP=kill, with @N for the Nth time and #B with batch B in hand")]
    Form,
    /// On the command line.
    #[error("{0:?} is neither stop nor kill")]
    Signal(String),
    /// On the command line.
    #[error("{0:?} after @ is no count from 1")]
    Nth(String),
    /// On the command line.
    #[error("{0:?} after # is no batch's number")]
    Batch(String),
    /// Anywhere.
    #[error(transparent)]
    Step(#[from] UnknownStep),
    /// In a configuration.
    #[error("{0:?} is not a probability: above 0 and at most 1, with at most six decimal places, like \"0.02\"")]
    Probability(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_stop_or_kill_and_when() {
        let rule: Rule = "BeforeSettleTx=stop@3#7".parse().expect("a rule");
        assert_eq!(rule, Rule { step: Step::BeforeSettleTx, what: What::Stop, when: When::Nth(3), batch: Some(BatchId(7)) });
        let rule: Rule = "Settled=kill".parse().expect("a rule");
        assert_eq!((rule.what, rule.when, rule.batch), (What::Kill, When::Nth(1), None));
        for (wrong, told) in [
            ("Settled", "expects STEP="),
            ("Settled=freeze", "neither stop nor kill"),
            ("Settled=kill@0", "no count"),
            ("Settled=kill@x", "no count"),
            ("Settled=kill#x", "no batch"),
            ("Somewhere=kill", "is not a step"),
        ] {
            let error = wrong.parse::<Rule>().expect_err(wrong).to_string();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_rule_says_itself() {
        let mut rule = Rule {
            step: Step::InsideSettleTx,
            what: What::Freeze(Duration::from_millis(4_500)),
            when: When::Chance("0.020".parse().expect("one")),
            batch: None,
        };
        assert_eq!(rule.to_string(), "freeze for 4500 ms at InsideSettleTx, with probability 0.02");
        rule = "InsideSettleTx=kill@2#7".parse().expect("a rule");
        assert_eq!(rule.to_string(), "kill at InsideSettleTx with batch 7 in hand, time 2");
    }

    #[test]
    fn a_probability_is_read_digit_by_digit() {
        for (text, millionths) in [("1", 1_000_000), ("1.0", 1_000_000), ("0.02", 20_000), ("0.000001", 1), ("0.3", 300_000)] {
            assert_eq!(text.parse::<Probability>().expect(text).per_million(), millionths, "{text}");
        }
        for wrong in
            ["0", "0.0", "1.000001", "2", "-0.1", "+0.1", ".5", "5.", "0.0000001", "1e-3", "", "0,5", "99999999999", "0.5 "]
        {
            assert!(wrong.parse::<Probability>().is_err(), "{wrong}");
        }
        assert_eq!(Probability(20_000).to_string(), "0.02");
        assert_eq!(Probability(1_000_000).to_string(), "1");
    }
}
