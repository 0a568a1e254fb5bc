//! `settled batch show ID`: everything about one batch, and what to do where a person is waited for.

use crate::output;
use crate::output::say;
use comfy_table::Table;
use domain::batch::BatchState;
use ledger::operate::{BatchDetail, PostingRow, RevisionRow};

pub(super) fn print(batch: &BatchDetail, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(batch);
    }
    print_head(batch);
    print_amounts(batch);
    for decision in &batch.decisions {
        let at = decision.at.format("%Y-%m-%d %H:%M:%S UTC");
        say!("{at} {} by {}: {}", decision.action, decision.operator, decision.reason);
    }
    match batch.row.state {
        BatchState::Quarantined => {
            say!("next: settled batch retry {0} --reason … | settled batch cancel {0} --reason …", batch.row.id)
        }
        BatchState::Broken => {
            say!(
                "next: settled batch replace --file … --profile … --reason … | settled batch accept {0} --reason … | settled batch cancel {0} --reason …",
                batch.row.id
            )
        }
        _ => {}
    }
    Ok(())
}

fn print_head(batch: &BatchDetail) {
    let row = &batch.row;
    say!("batch {}: {} of {} (revision {}), from {}", row.id, row.external_batch_id, row.source, row.revision, batch.file);
    say!("{}, business date {}, {} items, unit {}, {} attempts", row.state, row.business_date, row.items, row.unit, row.attempts);
    if let Some(reason) = &row.break_reason {
        say!("break: {reason}");
    }
    if let Some(at) = batch.settled_at {
        say!("settled {} under fence {} by {}", at.format("%Y-%m-%d %H:%M:%S UTC"), batch.stamp.fence, batch.stamp.holder);
    }
    if let Some(RevisionRow { id, revision, state }) = &batch.replaces {
        say!("replaces batch {id} (revision {revision}), which is {state}");
    }
    if let Some(RevisionRow { id, revision, state }) = &batch.replaced_by {
        say!("replaced by batch {id} (revision {revision}), which is {state}");
    }
}

fn print_amounts(batch: &BatchDetail) {
    let mut totals =
        output::table(["currency", "items", "gross", "fee", "net", "remitted", "rounding", "difference", "accepted"]);
    for total in &batch.totals {
        let show = |minor: i64| output::amount(minor.into(), &total.currency);
        totals.add_row([
            total.currency.clone(),
            total.items.to_string(),
            show(total.gross_minor),
            show(total.fee_minor),
            show(total.net_minor),
            show(total.remittance_minor),
            show(total.rounding_minor),
            show(total.difference_minor),
            show(total.accepted_minor),
        ]);
    }
    say!("{totals}");
    let posted = postings(&batch.postings);
    if !posted.is_empty() {
        say!("{posted}");
    }
    if batch.row.state == BatchState::Reversed {
        match &batch.reversal[..] {
            [] => say!("reversed: it had posted nothing, so nothing is taken back"),
            reversal => say!("reversed: every posting is taken back\n{}", postings(reversal)),
        }
    }
}

fn postings(rows: &[PostingRow]) -> Table {
    let mut table = output::table(["account", "currency", "debit", "credit"]);
    for posting in rows {
        let amount = output::amount(posting.amount_minor.into(), &posting.currency);
        let (debit, credit) = if posting.side == "D" { (amount, String::new()) } else { (String::new(), amount) };
        table.add_row([posting.account.clone(), posting.currency.clone(), debit, credit]);
    }
    table
}
