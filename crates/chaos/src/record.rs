//! What a drill came to: everything that is printed, put into the report, and written as JSON.

use crate::event::Event;
use crate::history::Line;
use serde::{Deserialize, Serialize};

/// The word on a drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every protection held, and every control arm showed the damage it is there for.
    Holds,
    /// A control arm stayed green, or nothing happened that a protection had to stop: the drill proves nothing.
    DidNotBite,
    /// A protection did not hold.
    Broken,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Verdict::Holds => "holds",
            Verdict::DidNotBite => "did not bite",
            Verdict::Broken => "broken",
        })
    }
}

/// What a check is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A protection: what must not happen did not.
    Holds,
    /// A control arm: without the protection the damage appears.
    Control,
    /// The protection had something to stop.
    Bites,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Holds => "holds",
            Kind::Control => "control",
            Kind::Bites => "bites",
        })
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// In which arm of the experiment.
    pub arm: String,
    /// What it is for.
    pub kind: Kind,
    /// What must be so, in words.
    pub must: String,
    /// What was seen.
    pub seen: String,
    /// Whether it was so.
    pub ok: bool,
}

/// Figures in rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of its columns, with units.
    pub columns: Vec<String>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty one.
    pub fn new<const N: usize>(title: &str, columns: [&str; N]) -> Table {
        Table { title: title.to_owned(), columns: columns.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// One more row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells.to_vec());
    }
}

/// Figures to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What runs to the right, with its unit.
    pub x: String,
    /// What runs upwards, with its unit.
    pub y: String,
    /// How.
    pub shape: Shape,
    /// What is compared.
    pub series: Vec<Series>,
}

/// How figures are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One bar a series; its only point is the height.
    Bars,
    /// A line through the points.
    Lines,
    /// A line through the points, on a logarithmic y axis.
    LogLines,
}

/// One line or bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

/// Everything about one drill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// What it is about, in a sentence.
    pub about: String,
    /// What its chance came from.
    pub seed: u64,
    /// The word on it; nothing where it could not be told to its end.
    pub verdict: Option<Verdict>,
    /// Why it could not be told to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    pub took_ms: u64,
    /// What was looked at.
    pub checks: Vec<Check>,
    /// Figures.
    pub tables: Vec<Table>,
    /// Figures to draw.
    pub plots: Vec<Plot>,
    /// What happened, in order.
    pub timeline: Vec<Event>,
    /// What the processes wrote down, on the axis of the timeline. By instance; not part of the JSON report, which it would swamp.
    #[serde(skip)]
    pub histories: Vec<(String, Vec<Line>)>,
}

impl Record {
    /// The word on it, or why there is none.
    #[must_use]
    pub fn word(&self) -> String {
        match (self.verdict, &self.error) {
            (verdict, Some(error)) => {
                let broken = verdict.map(|verdict| format!("{verdict}, ")).unwrap_or_default();
                format!("{broken}not told to its end: {error}")
            }
            (Some(verdict), None) => verdict.to_string(),
            (None, None) => "no verdict".to_owned(),
        }
    }

    /// Whether it holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.error.is_none() && self.verdict == Some(Verdict::Holds)
    }
}

/// The word on what was looked at.
#[must_use]
pub fn verdict(checks: &[Check]) -> Verdict {
    let failed = |kind: Kind| checks.iter().any(|check| check.kind == kind && !check.ok);
    if failed(Kind::Holds) {
        return Verdict::Broken;
    }
    let seen = |kind: Kind| checks.iter().any(|check| check.kind == kind);
    if failed(Kind::Control) || failed(Kind::Bites) || !seen(Kind::Holds) || !seen(Kind::Control) {
        return Verdict::DidNotBite;
    }
    Verdict::Holds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, ok: bool) -> Check {
        Check { arm: String::new(), kind, must: String::new(), seen: String::new(), ok }
    }

    #[test]
    fn a_drill_without_a_red_control_proves_nothing() {
        let holds = check(Kind::Holds, true);
        assert_eq!(verdict(std::slice::from_ref(&holds)), Verdict::DidNotBite, "no control at all");
        assert_eq!(verdict(&[holds.clone(), check(Kind::Control, false)]), Verdict::DidNotBite);
        assert_eq!(verdict(&[holds.clone(), check(Kind::Control, true), check(Kind::Bites, false)]), Verdict::DidNotBite);
        assert_eq!(verdict(&[check(Kind::Control, true)]), Verdict::DidNotBite, "nothing was protected");
        assert_eq!(verdict(&[holds, check(Kind::Control, true)]), Verdict::Holds);
    }

    #[test]
    fn broken_is_the_last_word() {
        assert_eq!(verdict(&[check(Kind::Holds, false), check(Kind::Control, false)]), Verdict::Broken);
    }
}
