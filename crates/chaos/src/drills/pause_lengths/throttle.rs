//! A tenth of a CPU for one process, by a control group of its own, where this user may make one.

use crate::DrillError;
use std::fs;
use std::path::{Path, PathBuf};

/// Microseconds of each tenth of a second.
const QUOTA_US: u64 = 10_000;
const PERIOD_US: u64 = 100_000;

/// The group. Dropped when its process has ended, it goes.
pub(super) struct Throttled(PathBuf);

/// Nothing where no group can be made: that is how it is for most users.
pub(super) fn throttle(pid: u32) -> Result<Option<Throttled>, DrillError> {
    let second = [("cpu.max", format!("{QUOTA_US} {PERIOD_US}"))];
    let first = [("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", QUOTA_US.to_string())];
    Ok(group("/sys/fs/cgroup", "cgroup.controllers", &second, pid).or_else(|| group("/sys/fs/cgroup/cpu", "tasks", &first, pid)))
}

fn group(root: &str, marks: &str, settings: &[(&str, String)], pid: u32) -> Option<Throttled> {
    let root = Path::new(root);
    if !root.join(marks).exists() {
        return None;
    }
    let group = root.join(format!("settled-drill-{pid}"));
    fs::create_dir(&group).ok()?;
    let throttled = Throttled(group);
    for (file, value) in settings {
        fs::write(throttled.0.join(file), value).ok()?;
    }
    fs::write(throttled.0.join("cgroup.procs"), pid.to_string()).ok()?;
    Some(throttled)
}

impl Drop for Throttled {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
