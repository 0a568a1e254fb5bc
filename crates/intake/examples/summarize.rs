//! Reads a settlement file and says what it came to: `cargo run -p intake --example summarize -- nacha payroll.ach.gz`.
//! The whole use of the crate in one page; a program that stores the lines does it where this one counts them.

use intake::{Profile, Stopped};
use std::path::Path;

fn main() -> std::process::ExitCode {
    match summarize() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn summarize() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(profile), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err(format!("give a profile ({}) and a file", Profile::names().collect::<Vec<_>>().join(", ")).into());
    };
    let profile = Profile::load(&profile)?;
    let mut chunks = 0;
    let mut sink = |_lines: Vec<domain::summary::StagedItem>| -> Result<(), Stopped> {
        chunks += 1;
        Ok(())
    };
    let summary = intake::read(intake::open(Path::new(&file))?, &file, &profile, &mut sink)?;
    for batch in summary.batches.iter().take(10) {
        println!("{} due {}", batch.external_batch_id, batch.business_date);
        for total in &batch.totals {
            println!("  {} {} lines, net {} minor units", total.currency, total.items, total.net_minor);
        }
        batch.breaks.iter().for_each(|sentence| println!("  broken: {sentence}"));
    }
    summary.warnings.iter().for_each(|warning| println!("warning: {warning}"));
    println!("{} batches, {} lines, {} bytes, {chunks} chunks", summary.batches.len(), summary.items, summary.bytes);
    Ok(())
}
