//! The machine that drills ran on: figures without it mean little.

use std::fs::read_to_string;

/// What `/proc` says, see proc(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Those that this process may use.
    pub cores: usize,
    /// All of it; 0 where it is not known.
    pub memory_mib: u64,
    /// Its release.
    pub kernel: String,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn this() -> Machine {
        let kernel = read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()).unwrap_or_default();
        let memory_mib = memory_kib(&read_to_string("/proc/meminfo").unwrap_or_default()).unwrap_or(0) / 1_024;
        Machine { cores: std::thread::available_parallelism().map_or(1, usize::from), memory_mib, kernel }
    }
}

fn memory_kib(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.trim().parse().ok()
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        write!(f, "{} {cores}, {} MiB, Linux {}", self.cores, self.memory_mib, self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(memory_kib("MemFree:  12 kB\nMemTotal:       24689336 kB\n"), Some(24_689_336));
        assert_eq!(memory_kib(""), None);
        assert!(Machine::this().memory_mib > 0, "this machine has /proc");
    }
}
