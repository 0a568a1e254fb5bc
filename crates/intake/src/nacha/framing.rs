//! Where records end: lines, or blocks of 94 characters without any line break. Needs `record.rs`.

use super::record::{LENGTH, Record};
use crate::error::Fault;
use crate::source::Source;
use std::io::Read;

#[derive(Clone, Copy)]
pub(super) enum Framing {
    Lines,
    Blocks,
}

impl Framing {
    /// Told by whether a line ends around the first record.
    pub(super) fn of(source: &mut Source<impl Read>) -> Result<Framing, Fault> {
        let head = source.peek(LENGTH + 2)?;
        let lines = head.len() < LENGTH || head.iter().take(LENGTH + 2).any(|byte| *byte == b'\n');
        Ok(if lines { Framing::Lines } else { Framing::Blocks })
    }

    /// The next record, checked for length and characters. Empty lines are passed over.
    pub(super) fn next<'s>(self, source: &'s mut Source<impl Read>) -> Result<Option<Record<'s>>, Fault> {
        match self {
            Framing::Lines => {
                while matches!(source.peek(2)?, [b'\n', ..] | [b'\r', b'\n'] | [b'\r']) {
                    source.line_bytes()?;
                }
                let line = source.next_line();
                source.line_bytes()?.map(|bytes| Record::new(line, bytes)).transpose()
            }
            Framing::Blocks => {
                let line = source.next_line();
                match source.block(LENGTH)? {
                    None => Ok(None),
                    // the last block may end with a line break
                    Some(bytes) if bytes.len() < LENGTH && bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n')) => Ok(None),
                    Some(bytes) => Record::new(line, bytes).map(Some),
                }
            }
        }
    }
}
