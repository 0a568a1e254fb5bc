//! NACHA files.
use crate::batches::Batches;
use crate::error::Fault;
use crate::source::Source;
use std::io::Read;
pub(crate) fn read(source: &mut Source<impl Read>, _batches: &mut Batches<'_>) -> Result<(), Fault> {
    source.peek(1)?;
    Err(Fault::at(1, "NACHA is not read yet", "wait"))
}
