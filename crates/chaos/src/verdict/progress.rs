//! When everything is well again, work goes on.

use super::calls::Call;
use super::{Finding, Healed, finding};
use crate::history::Op;
use std::time::Duration;

/// No lock that nobody releases, no worker that sulks.
pub const SOON_AFTER: &str = "work goes on soon after everything is healed";

/// The first commit after healing came within the limit. The director sees to it that there is work left.
#[must_use]
pub fn soon_after(calls: &[Call], healed: Healed) -> Finding {
    let commits = calls.iter().filter(|call| call.is_ok(Op::Settle)).filter_map(|call| call.answered_us);
    let first = commits.filter(|at_us| *at_us >= healed.at_us).min().map(|at_us| Duration::from_micros(at_us - healed.at_us));
    let against = match first {
        Some(first) if first <= healed.limit => Vec::new(),
        Some(first) => {
            vec![format!("the first commit came after {} ms, and may take {} ms", first.as_millis(), healed.limit.as_millis())]
        }
        None => vec!["nothing was committed any more".to_owned()],
    };
    let looked_at = format!("the first commit came after {} ms", first.unwrap_or_default().as_millis());
    finding(SOON_AFTER, looked_at, against)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::calls::calls;
    use crate::verdict::told::{A, Told};

    #[test]
    fn silence_after_healing_is_found() {
        let mut told = Told::default();
        told.settles(A, 5, &[1]);
        let calls = calls(&told.lines);
        let at = calls[0].answered_us.expect("answered");
        let healed = |at_us, limit_us| Healed { at_us, limit: Duration::from_micros(limit_us) };
        assert!(soon_after(&calls, healed(at - 10, 10)).ok);
        assert!(!soon_after(&calls, healed(at - 10, 9)).ok, "late");
        assert!(!soon_after(&calls, healed(at + 1, 1_000)).ok, "never");
    }
}
