//! The instances, and who looks after them as a service manager does: one that ended without being told to is started again.

use super::faults;
use crate::books::{Books, TTL};
use crate::instance::Instance;
use crate::{DrillError, Mark, Stage};
use std::process::ExitStatus;
use std::time::Duration;

/// What the server lets a session idle in a transaction.
pub(super) const IDLE: Duration = Duration::from_millis(500);
/// Of the program: a lock service or the database was not there when it was started.
const SERVICE_AWAY: i32 = 4;

pub(super) struct Instances<'a> {
    stage: &'a Stage,
    /// By the way that the director can hurt.
    books: Books<'a>,
    all: Vec<One>,
    /// Whether they hurt themselves.
    chaos: bool,
    ended: Vec<(String, ExitStatus)>,
}

#[derive(Default)]
struct One {
    instance: Option<Instance>,
    starts: u64,
    /// It was killed, or is to stop: not to be started before its time.
    told_to_end: bool,
}

impl<'a> Instances<'a> {
    pub(super) fn none(stage: &'a Stage, books: Books<'a>, chaos: bool) -> Instances<'a> {
        let all = (0..stage.options().instances).map(|_| One::default()).collect();
        Instances { stage, books, all, chaos, ended: Vec::new() }
    }

    pub(super) fn start_all(&mut self) -> Result<(), DrillError> {
        (0..self.all.len()).try_for_each(|who| self.start(who))
    }

    /// What is left of an earlier start, which may drain for long where a line is hurt, is killed.
    pub(super) fn start(&mut self, who: usize) -> Result<(), DrillError> {
        let name = name(who);
        self.all[who].instance = None;
        let mut arguments = vec!["serve".to_owned()];
        if self.chaos {
            let file = self.stage.path(&format!("{name}-{}.toml", self.all[who].starts));
            let text = faults::configuration(self.seed(who), TTL, IDLE);
            std::fs::write(&file, text).map_err(DrillError::io("writing a configuration"))?;
            arguments.splice(0..0, ["--config".to_owned(), file.to_string_lossy().into_owned()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let instance = Some(self.books.start(&name, &arguments)?);
        self.all[who] = One { instance, starts: self.all[who].starts + 1, told_to_end: false };
        Ok(())
    }

    /// From the drill's seed: another for each instance and each of its starts.
    fn seed(&self, who: usize) -> u64 {
        use rand::RngExt;
        self.stage.chance(1_000 + who as u64 * 1_000 + self.all[who].starts).random()
    }

    /// One that ended though nobody had told it to is started again.
    pub(super) fn look_after(&mut self) -> Result<(), DrillError> {
        for who in 0..self.all.len() {
            let one = &mut self.all[who];
            let Some(instance) = one.instance.as_mut().filter(|_| !one.told_to_end) else { continue };
            let Some(status) = instance.process.ended()? else { continue };
            self.stage.tell(&name(who), Mark::Kill, format!("has ended by itself: {status}"));
            self.ended.push((name(who), status));
            self.start(who)?;
        }
        Ok(())
    }

    pub(super) fn freeze(&mut self, who: usize) -> Result<(), DrillError> {
        self.to(who, Instance::freeze)
    }

    pub(super) fn wake(&mut self, who: usize) -> Result<(), DrillError> {
        self.to(who, Instance::wake)
    }

    pub(super) fn kill(&mut self, who: usize) -> Result<(), DrillError> {
        self.all[who].told_to_end = true;
        self.to(who, Instance::kill)
    }

    /// SIGTERM.
    pub(super) fn stop(&mut self, who: usize) -> Result<(), DrillError> {
        self.stage.tell(&name(who), Mark::Note, "is to stop (SIGTERM)");
        self.all[who].told_to_end = true;
        self.to(who, |instance| Ok(instance.process.terminate()?))
    }

    /// It may have killed itself a moment before; then it is looked after.
    fn to(&mut self, who: usize, what: impl FnOnce(&mut Instance) -> Result<(), DrillError>) -> Result<(), DrillError> {
        let Some(instance) = self.all[who].instance.as_mut() else { return Ok(()) };
        match what(instance) {
            Err(_) if instance.process.ended()?.is_some() => Ok(()),
            done => done,
        }
    }

    /// All of them stop, so that the histories are whole.
    pub(super) async fn end(&mut self) -> Result<(), DrillError> {
        (0..self.all.len()).try_for_each(|who| self.stop(who))?;
        for one in &mut self.all {
            if let Some(mut instance) = one.instance.take() {
                instance.end().await?;
            }
        }
        Ok(())
    }

    /// They stop hurting themselves: all are started anew.
    pub(super) async fn heal(&mut self) -> Result<(), DrillError> {
        self.end().await?;
        self.chaos = false;
        self.start_all()
    }

    /// How many ended without being told to.
    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    /// Of those, who neither was killed nor found a service away.
    pub(super) fn ended_badly(&self) -> Vec<String> {
        let badly = |status: &ExitStatus| status.code().is_some_and(|code| code != SERVICE_AWAY);
        self.ended.iter().filter(|(_, status)| badly(status)).map(|(name, status)| format!("{name}: {status}")).collect()
    }
}

fn name(who: usize) -> String {
    u8::try_from(who).map_or_else(|_| who.to_string(), |who| char::from(b'A'.saturating_add(who)).to_string())
}
