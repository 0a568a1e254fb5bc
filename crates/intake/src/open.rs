//! Opening a settlement file, compressed or not. Needs `error.rs`.

use crate::error::ReadError;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// The first two bytes of every gzip member (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Opens a file for [`crate::read`]. Gzip is known by its first bytes, never by the name; several members in a row are one file.
///
/// # Errors
/// [`ReadError::Io`] where it cannot be opened. Damage of the compressed data shows when it is read.
pub fn open(path: &Path) -> Result<Box<dyn Read + Send>, ReadError> {
    sniff(path).map_err(|source| ReadError::Io { file: path.display().to_string(), line: None, source })
}

fn sniff(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let mut file = File::open(path)?;
    let mut head = Vec::with_capacity(GZIP_MAGIC.len());
    file.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head)?;
    let compressed = head == GZIP_MAGIC;
    let whole = Cursor::new(head).chain(file);
    // the decoder asks for a few bytes at a time
    Ok(if compressed { Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(64 * 1024, whole))) } else { Box::new(whole) })
}
