//! Progress of long work: a bar on a terminal, a plain line now and then elsewhere, nothing with `--json`.

use crate::exit;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often a plain line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows how far something is.
pub(crate) struct Progress {
    bar: ProgressBar,
    what: &'static str,
    plain: bool,
    last_line: Instant,
}

impl Progress {
    /// `total` unknown: 0.
    pub(crate) fn start(what: &'static str, total: u64, quiet: bool) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let bar = if total == 0 { ProgressBar::no_length() } else { ProgressBar::new(total) };
        bar.set_draw_target(if quiet || !terminal { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() });
        let template = if total == 0 {
            "{spinner} {msg} {human_pos} {per_sec}"
        } else {
            "{msg} {bar:30} {human_pos}/{human_len} {per_sec} {eta}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Progress { bar, what, plain: !quiet && !terminal, last_line: Instant::now() }
    }

    /// So many so far.
    pub(crate) fn at(&mut self, done: u64) {
        self.bar.set_position(done);
        if self.plain && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            match self.bar.length() {
                Some(total) => exit::tell(&format!("{}: {done} of {total}", self.what)),
                None => exit::tell(&format!("{}: {done}", self.what)),
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
