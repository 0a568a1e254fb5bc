//! `settled fence list | adopt`: who holds which unit by the ledger, and where its tokens come from.

use super::Because;
use crate::config::Config;
use crate::output::say;
use crate::{output, wire};
use clap::Subcommand;
use ledger::operate::{FenceRow, RejectionRow, SourceRow};
use serde::Serialize;
use std::process::ExitCode;

/// Who holds which unit, by the ledger; where its tokens come from
#[derive(Debug, Subcommand)]
pub(super) enum Fence {
    /// List the newest holder of each unit, the sources of tokens, and the latest refused writes
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make the configured source of tokens the newest; whoever holds a unit loses it
    Adopt(Because),
}

/// Refused writes that are listed.
const SHOWN: u32 = 20;

#[derive(Debug, Serialize)]
struct Listing {
    sources: Vec<SourceRow>,
    units: Vec<FenceRow>,
    rejections: Vec<RejectionRow>,
}

impl Fence {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        let ledger = wire::existing(config).await?;
        match self {
            Fence::List { json } => {
                let listing = Listing {
                    sources: ledger.sources().await?,
                    units: ledger.fences().await?,
                    rejections: ledger.rejections(SHOWN).await?,
                };
                if *json { output::json(&listing)? } else { show(listing) }
            }
            Fence::Adopt(because) => {
                let source = wire::source(config).await?;
                let generation = ledger.adopt_source(&source, &because.operator()?).await?;
                say!("tokens of {source:?} are adopted as generation {generation}; every holder of an older one is refused");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(listing: Listing) {
    let mut sources = output::table(["generation", "source", "adopted", "by", "reason"]);
    for source in listing.sources {
        let at = source.adopted_at.format("%Y-%m-%d %H:%M:%S UTC").to_string();
        sources.add_row([source.generation.to_string(), source.source, at, source.adopted_by, source.reason]);
    }
    say!("{sources}");
    let mut units = output::table(["unit", "job", "fence", "holder", "registered"]);
    for unit in listing.units {
        let at = unit.registered_at.map_or_else(|| "never".to_owned(), |at| at.format("%Y-%m-%d %H:%M:%S UTC").to_string());
        let (fence, holder) = (unit.stamp.fence.to_string(), unit.stamp.holder.to_string());
        units.add_row([unit.unit.to_string(), unit.job.unwrap_or_default(), fence, holder, at]);
    }
    say!("{units}");
    let mut refused = output::table(["refused", "operation", "unit", "batch", "fence", "newer"]);
    for row in listing.rejections {
        refused.add_row([
            row.rejected_at.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
            row.operation,
            row.unit.to_string(),
            row.batch.map_or_else(String::new, |batch| batch.to_string()),
            row.stamp.fence.to_string(),
            row.newer.fence.to_string(),
        ]);
    }
    if !refused.is_empty() {
        say!("{refused}");
    }
}
