//! The bytes of a file as records of bounded length, counted and hashed on the way. Needs `error.rs`, `text.rs`.
//!
//! One buffer, never larger than a few records: a line without an end is an error after [`MAX_RECORD_BYTES`], not a full
//! memory. Line numbers are physical, so an error points where an editor does.

use crate::error::Fault;
use crate::text::Encoding;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::io::{ErrorKind, Read};

/// Longest record that is read, in bytes: a line, or a CSV record with line breaks inside quotes.
pub const MAX_RECORD_BYTES: usize = 64 * 1024;

const BUFFER_BYTES: usize = 4 * MAX_RECORD_BYTES;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Size and hash of everything that was read.
pub(crate) struct Finished {
    pub(crate) bytes: u64,
    pub(crate) sha256: [u8; 32],
}

/// Reads records from anything that delivers bytes.
pub(crate) struct Source<R> {
    inner: R,
    encoding: Encoding,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    bytes: u64,
    hash: Sha256,
    line: u64,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(inner: R, encoding: Encoding) -> Source<R> {
        let buffer = vec![0; BUFFER_BYTES];
        Source { inner, encoding, buffer, start: 0, end: 0, ended: false, bytes: 0, hash: Sha256::new(), line: 0 }
    }

    /// Number of the last record that was handed out; 1 before the first, so that every error has a line.
    pub(crate) fn line(&self) -> u64 {
        self.line.max(1)
    }

    /// Number of the record that comes next.
    pub(crate) fn next_line(&self) -> u64 {
        self.line + 1
    }

    /// Makes at least `wanted` unread bytes available, fewer only at the end of the file, and shows them.
    pub(crate) fn peek(&mut self, wanted: usize) -> Result<&[u8], Fault> {
        while self.end - self.start < wanted && !self.ended {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// A mark at the very start says nothing but UTF-8 and is skipped; it still counts as bytes of the file.
    pub(crate) fn skip_byte_order_mark(&mut self) -> Result<(), Fault> {
        let encoding = self.encoding;
        let head = self.peek(BYTE_ORDER_MARK.len())?;
        if head.is_empty() {
            return Err(Fault::at(1, "the file is empty", "transfer it again"));
        }
        if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            return Err(Fault::at(1, "the file is UTF-16 (UTF-8 is expected)", "export it as UTF-8"));
        }
        if head.starts_with(BYTE_ORDER_MARK) {
            if encoding != Encoding::Utf8 {
                let what = format!("the file begins with the mark of UTF-8 (the profile says {})", encoding.name());
                return Err(Fault::at(1, what, "set encoding = \"utf-8\" in the profile"));
            }
            self.start += BYTE_ORDER_MARK.len();
        }
        Ok(())
    }

    /// The next line without its end (LF or CRLF; the last may have none), or `None` at the end of the file.
    pub(crate) fn line_bytes(&mut self) -> Result<Option<&[u8]>, Fault> {
        let mut searched = 0;
        let (length, consumed) = loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = unread[searched..].iter().position(|byte| *byte == b'\n') {
                break (searched + at, searched + at + 1);
            }
            searched = unread.len();
            if searched > MAX_RECORD_BYTES {
                break (searched, searched);
            }
            if self.ended {
                if searched == 0 {
                    return Ok(None);
                }
                break (searched, searched);
            }
            self.fill()?;
        };
        self.line += 1;
        if length > MAX_RECORD_BYTES {
            return Err(too_long(self.line));
        }
        let line = &self.buffer[self.start..self.start + length];
        self.start += consumed;
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// The next line as text.
    pub(crate) fn line_text(&mut self) -> Result<Option<(u64, Cow<'_, str>)>, Fault> {
        let (number, encoding) = (self.line + 1, self.encoding);
        let Some(bytes) = self.line_bytes()? else { return Ok(None) };
        encoding.text(number, bytes).map(|text| Some((number, text)))
    }

    /// The next `length` bytes, fewer at the end of the file; `None` there.
    pub(crate) fn block(&mut self, length: usize) -> Result<Option<&[u8]>, Fault> {
        let length = length.min(self.peek(length)?.len());
        if length == 0 {
            return Ok(None);
        }
        self.line += 1;
        self.start += length;
        Ok(Some(&self.buffer[self.start - length..self.start]))
    }

    /// What the file came to. Call it at its end.
    pub(crate) fn finish(self) -> Finished {
        Finished { bytes: self.bytes, sha256: self.hash.finalize().into() }
    }

    fn fill(&mut self) -> Result<(), Fault> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let read = loop {
            match self.inner.read(&mut self.buffer[self.end..]) {
                Ok(read) => break read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Io { line: self.line + 1, error }),
            }
        };
        self.ended = read == 0;
        self.hash.update(&self.buffer[self.end..self.end + read]);
        self.bytes += read as u64;
        self.end += read;
        Ok(())
    }
}

/// The error of a record beyond [`MAX_RECORD_BYTES`].
pub(crate) fn too_long(line: u64) -> Fault {
    let what = format!("a record is longer than {MAX_RECORD_BYTES} bytes");
    Fault::at(line, what, "check that this is a settlement file and that no quote is left open")
}
