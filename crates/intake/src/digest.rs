//! The digest of a batch: SHA-256 over everything that settles, so that a batch that comes again can be told from another one
//! under its name. Needs `domain::item` and `domain::totals`.
//!
//! The encoding, in file order: per line the byte `I`, then kind, merchant, currency and dedupe key (each as its length in
//! four bytes, big endian, and its UTF-8 bytes), then gross, fee and residual (eight bytes each, big endian). At the end the
//! byte `B`, business date (`YYYY-MM-DD`) and fee mode as texts; then per currency with declared totals, by code, the byte
//! `D`, the code, and items, debit, credit, gross, fee, net: each the byte 0, or the byte 1 and eight bytes. Line numbers and
//! columns that nothing reads are left out: a file that was only sorted into other lines' company is the same batch.

use chrono::NaiveDate;
use domain::item::{FeeMode, Item};
use domain::money::Currency;
use domain::totals::Declared;
use sha2::{Digest, Sha256};

/// A digest in the making.
#[derive(Default)]
pub(crate) struct BatchDigest {
    hash: Sha256,
    scratch: Vec<u8>,
}

impl BatchDigest {
    pub(crate) fn item(&mut self, item: &Item) {
        self.scratch.clear();
        self.scratch.push(b'I');
        for field in [item.kind.as_str(), &item.merchant, item.currency.code(), &item.dedupe_key] {
            put_text(&mut self.scratch, field);
        }
        for amount in [item.gross_minor, item.fee_minor, item.residual_micro] {
            self.scratch.extend(amount.to_be_bytes());
        }
        self.hash.update(&self.scratch);
    }

    pub(crate) fn finish<'a>(
        self,
        business_date: NaiveDate,
        fee_mode: FeeMode,
        declared: impl Iterator<Item = (&'a Currency, &'a Declared)>,
    ) -> [u8; 32] {
        let mut tail = vec![b'B'];
        put_text(&mut tail, &business_date.to_string());
        put_text(&mut tail, fee_mode.as_str());
        for (currency, declared) in declared {
            tail.push(b'D');
            put_text(&mut tail, currency.code());
            let Declared { items, debit_minor, credit_minor, gross_minor, fee_minor, net_minor } = *declared;
            for figure in [items, debit_minor, credit_minor, gross_minor, fee_minor, net_minor] {
                put_figure(&mut tail, figure);
            }
        }
        self.hash.chain_update(tail).finalize().into()
    }
}

/// What a line without an id says, for its fingerprint.
pub(crate) fn fingerprint(item: &Item, texts: &[&str]) -> [u8; 32] {
    let mut bytes = Vec::new();
    for field in [item.kind.as_str(), &item.merchant, item.currency.code()].into_iter().chain(texts.iter().copied()) {
        put_text(&mut bytes, field);
    }
    for amount in [item.gross_minor, item.fee_minor, item.residual_micro] {
        bytes.extend(amount.to_be_bytes());
    }
    Sha256::digest(bytes).into()
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    // a record is at most 64 KiB long
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes());
    out.extend(text.as_bytes());
}

fn put_figure(out: &mut Vec<u8>, figure: Option<i64>) {
    match figure {
        None => out.push(0),
        Some(figure) => {
            out.push(1);
            out.extend(figure.to_be_bytes());
        }
    }
}
