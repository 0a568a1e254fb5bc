//! What instances do to themselves: chaos mode, as a deployed one has it, by a configuration file of each start.
//!
//! A director outside cannot see where in its protocol an instance is, and seldom meets a write under way. These faults are there.

use std::time::Duration;

/// Before this one every start freezes, whatever chance says.
const ITS_NTH_WRITE: u32 = 5;

/// A fault at a step, with its probability in parts of a hundred thousand. A minute has some hundreds of batches and some dozens of
/// takeovers, so these are some dozens of faults; and most batches come through at the first try.
struct Chance {
    step: &'static str,
    what: &'static str,
    /// Nothing for a kill, which lasts.
    span: Option<Duration>,
    in_100_000: u32,
}

/// Freezes outlive a lease by so much that etcd has told the next one, who has registered: the write is late.
/// Those inside the transaction last for longer than the server lets a session idle, and for less than the lease: the transaction
/// is gone, the unit is not.
fn faults(ttl: Duration, idle: Duration) -> Vec<Chance> {
    let of = |step, what, span, in_100_000| Chance { step, what, span, in_100_000 };
    vec![
        of("OwnershipProven", "freeze", Some(ttl * 5 / 2), 10_000),
        of("BeforeSettleTx", "freeze", Some(ttl * 5 / 2), 7_000),
        of("InsideSettleTx", "freeze", Some(idle * 3), 3_000),
        of("InsideSettleTx", "kill", None, 2_000),
        of("Settled", "kill", None, 1_000),
        of("BatchesClaimed", "kill", None, 1_000),
        of("FenceRegistered", "cut", Some(ttl * 3 / 2), 15_000),
        of("InsideSettleTx", "delay", Some(ttl / 10), 8_000),
        of("BeforeSettleTx", "delay", Some(ttl / 5), 8_000),
        of("BeforeRelease", "delay", Some(ttl / 5), 5_000),
    ]
}

/// The configuration of one start. Each has a seed of its own: one that died at its third batch is not to die there for ever.
pub(super) fn configuration(seed: u64, ttl: Duration, idle: Duration) -> String {
    // a number of TOML has a sign
    let mut text = format!("environment = \"staging\"\n\n[chaos]\nseed = {}\n", seed >> 1);
    for Chance { step, what, span, in_100_000 } in faults(ttl, idle) {
        text.push_str(&format!("\n[[chaos.fault]]\nstep = \"{step}\"\nwhat = \"{what}\"\n"));
        text.push_str(&span.map(|span| format!("for_ms = {}\n", span.as_millis())).unwrap_or_default());
        text.push_str(&format!("probability = \"0.{in_100_000:05}\"\n"));
    }
    // and one that does not depend on chance: without a late write a soak has not bitten
    let frozen_ms = (ttl * 5 / 2).as_millis();
    text.push_str(&format!(
        "\n[[chaos.fault]]\nstep = \"BeforeSettleTx\"\nwhat = \"freeze\"\nfor_ms = {frozen_ms}\nnth = {ITS_NTH_WRITE}\n"
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freezes_are_longer_than_what_they_are_to_outlive() {
        let (ttl, idle) = (Duration::from_secs(2), Duration::from_millis(500));
        let text = configuration(u64::MAX, ttl, idle);
        assert!(text.contains("seed = 9223372036854775807\n"), "{text}");
        let frozen = |step: &str| {
            let all = faults(ttl, idle);
            all.into_iter().find(|fault| fault.step == step && fault.what == "freeze").and_then(|fault| fault.span)
        };
        assert!(frozen("BeforeSettleTx") > Some(ttl * 2) && frozen("OwnershipProven") > Some(ttl * 2));
        assert!(frozen("InsideSettleTx") > Some(idle * 2) && frozen("InsideSettleTx") < Some(ttl));
        assert!(text.contains("what = \"kill\"\nprobability = \"0.02000\""), "{text}");
    }

    #[test]
    fn a_batch_mostly_comes_through() {
        let each = ["BatchesClaimed", "BeforeSettleTx", "InsideSettleTx", "Settled"];
        let all = faults(Duration::from_secs(2), Duration::from_millis(500));
        let harm = all.iter().filter(|fault| each.contains(&fault.step) && fault.what != "delay");
        assert!((5_000..=15_000).contains(&harm.map(|fault| fault.in_100_000).sum::<u32>()));
    }
}
