//! A drill, and how it is run.

use crate::event::{Event, Timeline};
use crate::record::{Record, Verdict};
use crate::stage::{Servers, Stage};
use crate::{DrillError, drills};
use serde::Serialize;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A story while it is being told. Not for another thread: it blocks where servers start and end.
pub type Telling<'a> = Pin<Box<dyn Future<Output = Result<(), DrillError>> + 'a>>;

/// An experiment that anyone can run.
#[derive(Clone, Copy, Serialize)]
pub struct Drill {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about, in a sentence.
    pub about: &'static str,
    /// What it needs besides this program.
    pub needs: &'static str,
    /// Part of what is run with every change, which has a few minutes for all of them.
    pub quick: bool,
    /// Tells it.
    #[serde(skip)]
    pub tell: for<'a> fn(&'a Stage) -> Telling<'a>,
}

/// How drills are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where all chance comes from.
    pub seed: u64,
    /// The program whose processes are the instances.
    pub program: PathBuf,
    /// How long `soak` lasts.
    pub soak: Duration,
    /// How many instances it has.
    pub instances: usize,
}

/// Those of these names, in this order.
///
/// # Errors
/// A sentence that names the one that is not there.
pub fn drills_named(names: &[String]) -> Result<Vec<&'static Drill>, String> {
    let named = |name: &String| {
        let found = drills::ALL.iter().find(|drill| drill.name == name.as_str());
        found.ok_or_else(|| format!("there is no drill {name:?}; `settled drill list` names all"))
    };
    names.iter().map(named).collect()
}

impl Drill {
    /// Runs it to its end. Every event is given to `tell` as it comes.
    pub async fn run(&self, options: &Options, servers: &Arc<Servers>, tell: impl Fn(&Event) + Send + Sync + 'static) -> Record {
        let begun = Instant::now();
        let timeline = Arc::new(Timeline::begin(tell));
        let (mut record, told) = match Stage::set(options, servers, Arc::clone(&timeline)) {
            Ok(stage) => {
                let told = (self.tell)(&stage).await;
                (stage.strike(), told)
            }
            Err(error) => (Record::default(), Err(error)),
        };
        record.name = self.name.to_owned();
        record.about = self.about.to_owned();
        record.seed = options.seed;
        record.took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        record.timeline = timeline.events();
        match told {
            Ok(()) => record.verdict = Some(crate::record::verdict(&record.checks)),
            Err(error) => {
                record.error = Some(error.to_string());
                // it could not go on, perhaps because of just that
                let broken = crate::record::verdict(&record.checks) == Verdict::Broken;
                record.verdict = broken.then_some(Verdict::Broken);
            }
        }
        record
    }
}
