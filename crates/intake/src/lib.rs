//! Readers of settlement files: CSV by profile (the canonical CSV is one), canonical NDJSON and NACHA.
//!
//! [`read`] streams a file once, hands its lines over in chunks and says at the end what the file and each batch came to:
//! memory is bounded by the longest record, the number of batches, the number of lines that carry no id, and 16 MiB of lines
//! that wait for a name which only a later line says. Start with [`profile`] (what a format is told by), then `csv/mod.rs` or
//! `nacha/mod.rs`.
//!
//! An error means that nothing of the file may be used: the receiver throws away the chunks it already has. A file that can be
//! read but does not add up is no error: its batches carry `breaks`.

mod batches;
mod csv;
mod digest;
mod error;
mod key;
mod money;
mod nacha;
mod ndjson;
mod number;
mod open;
pub mod profile;
pub mod sample;
mod source;
mod text;

pub use error::{ReadError, Stopped};
pub use open::open;
pub use profile::Profile;
pub use source::MAX_RECORD_BYTES;

use batches::Batches;
use domain::summary::{FileSummary, StagedItem};
use error::Fault;
use profile::Layout;
use source::Source;

/// Lines that are handed over at once.
pub const CHUNK_ITEMS: usize = 1_000;

/// Reads a whole settlement file.
///
/// `name` is what messages call the file. Lines go to `sink` in file order within their batch, in chunks of at most
/// [`CHUNK_ITEMS`], each with the index of its batch in [`FileSummary::batches`]. The same bytes read by the same profile give
/// the same items, keys and digests, on every platform.
///
/// # Errors
/// [`ReadError`]: the file is unreadable for this profile (with file, line and remedy), or the sink stopped. What the sink
/// has received by then must be thrown away.
pub fn read(
    source: impl std::io::Read,
    name: &str,
    profile: &Profile,
    sink: &mut dyn FnMut(Vec<StagedItem>) -> Result<(), Stopped>,
) -> Result<FileSummary, ReadError> {
    let mut source = Source::new(source, profile.encoding());
    let mut batches = Batches::new(profile, sink);
    read_layout(&mut source, profile, &mut batches)
        .and_then(|()| batches.finish(name, source.finish()))
        .map_err(|fault| fault.in_file(name))
}

fn read_layout(source: &mut Source<impl std::io::Read>, profile: &Profile, batches: &mut Batches<'_>) -> Result<(), Fault> {
    source.skip_byte_order_mark()?;
    match &profile.layout {
        Layout::Csv(layout) => csv::read(source, profile, layout, batches),
        Layout::Ndjson => ndjson::read(source, profile, batches),
        Layout::Nacha => nacha::read(source, batches),
    }
}
