//! `settled lease list | advise`: who holds which unit, by the lock service; whether leases last long enough.

mod advice;
mod advise;
mod recorded;

use crate::config::Config;
use crate::output::say;
use crate::{output, wire};
use clap::Subcommand;
use serde::Serialize;
use std::process::ExitCode;

/// Who holds which unit, by the lock service; whether leases last long enough
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Lease {
    /// List the leases of this ledger
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Say whether lease.ttl_ms covers what instances recorded, and what it should be
    Advise(advise::Advise),
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    holder: Option<String>,
    expires_in_ms: Option<i64>,
}

impl Lease {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        match self {
            Lease::List { json } => list(config, *json).await,
            Lease::Advise(advise) => advise.run(config).await,
        }
    }
}

async fn list(config: &Config, json: bool) -> anyhow::Result<ExitCode> {
    let ledger = wire::existing(config).await?;
    let mut backend = wire::connector(config)?.connect().await?;
    let rows = backend.inspect(&ledger.meta().ledger_id.to_string()).await?;
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|row| {
            let holder = row.holder.map(|holder| holder.to_string());
            Row { name: row.name.to_string(), holder, expires_in_ms: row.expires_in_ms }
        })
        .collect();
    if json {
        output::json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = output::table(["lease", "holder", "expires in"]);
    for row in rows {
        let left = match row.expires_in_ms {
            Some(left) if left > 0 => format!("{left} ms"),
            Some(_) => "expired".to_owned(),
            None => "not said".to_owned(),
        };
        table.add_row([row.name, row.holder.unwrap_or_else(|| "somebody else".to_owned()), left]);
    }
    say!("{table}");
    Ok(ExitCode::SUCCESS)
}
