//! `settled lease advise`: whether the TTL covers what instances recorded, and what it should be.

use super::advice::{Advice, advice};
use super::recorded::Recorded;
use crate::config::Config;
use crate::output::say;
use crate::{output, wire};
use std::process::ExitCode;

/// Say whether lease.ttl_ms covers what instances recorded, and what it should be
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Advise {
    /// Metrics of instances: addresses such as http://host:9464/metrics, or files of saved ones; all of them together. If not given,
    /// those of this configuration's admin.listen
    #[arg(value_name = "ADDRESS|FILE")]
    from: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Advise {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        let own = [format!("http://{}/metrics", config.admin.listen)];
        let places = if self.from.is_empty() { own.to_vec() } else { self.from.clone() };
        let recorded = tokio::task::spawn_blocking(move || {
            let mut recorded = Recorded::default();
            places.iter().try_for_each(|place| recorded.read(place)).map(|()| recorded)
        });
        let shortest = wire::connector(config)?.capabilities().shortest_ttl;
        let advice = advice(&recorded.await??, &config.keeper_settings(), shortest);
        if self.json {
            output::json(&advice)?
        } else {
            show(&advice)
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(advice: &Advice) {
    let ms = |value: Option<u64>| value.map_or_else(|| "not recorded".to_owned(), |ms| format!("{ms} ms"));
    let mut table = output::table(["recorded", "", "of"]);
    let renewals = format!("{} renewals, {} not answered", advice.renewals, advice.renewals_unknown);
    let settled = format!("{} transactions", advice.settle_transactions);
    for (what, value, of) in [
        ("settle transaction, 99.9 % within", advice.settle_p999_ms, &settled),
        ("left at a renewal, 99.9 % at least", advice.left_at_renewal_p001_ms, &renewals),
        ("so a renewal comes late by at most", advice.renewal_delay_p999_ms, &renewals),
        ("unit held, 99.9 % within (renewed, so it may be long)", advice.hold_p999_ms, &String::new()),
    ] {
        table.add_row([what.to_owned(), ms(value), of.clone()]);
    }
    say!("{table}");
    for remark in &advice.remarks {
        say!("{remark}");
    }
    let ttl = advice.ttl_ms;
    match (advice.covered, advice.needed_ms) {
        (Some(true), Some(_)) if !advice.remarks.is_empty() => {
            say!("lease.ttl_ms = {ttl} covers 99.9 % of it, which is too little to shorten it by")
        }
        (Some(true), Some(needed)) => say!("lease.ttl_ms = {ttl} covers 99.9 % of it; {needed} would be enough"),
        (Some(false), Some(needed)) => say!("lease.ttl_ms = {ttl} is too short for it: set it to {needed} or more"),
        _ => say!("nothing was recorded: let an instance serve for a night, then ask again"),
    }
}
