//! Lines of a file that have the identity of another one. An import asks its tables; without a ledger each identity is
//! remembered as 128 bits of a hash, so that half a million lines take some tens of MiB.

use domain::summary::{FileSummary, StagedItem};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Repeated lines that are told per batch.
const TOLD: usize = 5;

/// Batch and line of a file.
type Place = (u32, i64);

/// What was seen so far.
#[derive(Default)]
pub(super) struct Repeated {
    holders: HashMap<u128, Place>,
    by_batch: BTreeMap<u32, Lines>,
}

#[derive(Default)]
struct Lines {
    /// The line, its identity, and who holds that.
    told: Vec<(i64, String, Place)>,
    untold: usize,
}

impl Repeated {
    /// The earlier batch holds an identity, and within it the earlier line, as in a ledger.
    pub(super) fn see(&mut self, staged: &StagedItem) {
        let (key, place) = (&staged.item.dedupe_key, (staged.batch, staged.item.line_no));
        let holder = *self.holders.entry(hash(key)).or_insert(place);
        if holder == place {
            return;
        }
        let (first, second) = if place < holder { (place, holder) } else { (holder, place) };
        self.holders.insert(hash(key), first);
        let lines = self.by_batch.entry(second.0).or_default();
        if lines.told.len() < TOLD {
            lines.told.push((second.1, key.clone(), first));
        } else {
            lines.untold += 1;
        }
    }

    /// Adds them to what breaks each batch.
    pub(super) fn tell(self, summary: &mut FileSummary) {
        let names: Vec<String> = summary.batches.iter().map(|batch| batch.external_batch_id.clone()).collect();
        for (batch, Lines { told, untold }) in self.by_batch {
            let breaks = &mut summary.batches[batch as usize].breaks;
            for (line, key, (holder, at)) in told {
                breaks.push(format!("line {line} repeats {key:?} of batch {:?}, line {at}", names[holder as usize]));
            }
            if untold > 0 {
                breaks.push(format!("and {untold} more repeated lines"));
            }
        }
    }
}

fn hash(key: &str) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, key).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    (half(0) << 64) | half(1)
}
