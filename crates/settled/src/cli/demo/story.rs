//! The timeline, told as it happens.

use crate::output::say;
use anstyle::{AnsiColor, Style};
use std::time::Instant;

/// Tells who did what, and when.
pub(super) struct Story {
    begun: Instant,
}

const ICE: Style = AnsiColor::Cyan.on_default().bold();
const NO: Style = AnsiColor::Red.on_default().bold();
const PLAIN: Style = Style::new();

impl Story {
    pub(super) fn begin() -> Story {
        say!("{:>8}  {:<7} what happens", "time", "who");
        Story { begun: Instant::now() }
    }

    pub(super) fn tell(&self, who: &str, what: &str) {
        self.line(who, what, " ", PLAIN);
    }

    pub(super) fn freeze(&self, who: &str, what: &str) {
        self.line(who, what, "*", ICE);
    }

    pub(super) fn wake(&self, who: &str, what: &str) {
        self.line(who, what, "*", ICE);
    }

    pub(super) fn refused(&self, who: &str, what: &str) {
        self.line(who, what, "X", NO);
    }

    fn line(&self, who: &str, what: &str, mark: &str, style: Style) {
        let at = self.begun.elapsed();
        say!("{:>6.2} s  {who:<6} {style}{mark} {what}{style:#}", at.as_secs_f64());
    }
}
