//! Which addenda must follow an entry, and whether they did. Needs `codes.rs`, `record.rs`.

use super::codes::EntryClass;
use super::record::Record;
use crate::error::Fault;

/// Addenda of IAT that every entry has, in this order.
const IAT_MANDATORY: [&str; 7] = ["10", "11", "12", "13", "14", "15", "16"];
/// Optional ones after them and how many there may be: remittance text, foreign correspondent banks.
const IAT_OPTIONAL: [(&str, u64); 2] = [("17", 2), ("18", 5)];

/// The addenda of the entry that was read last.
pub(super) struct Addenda {
    class: EntryClass,
    entry_line: u64,
    /// Last seven digits of the entry's trace number, which every addenda record repeats.
    sequence: String,
    expected: u64,
    seen: u64,
    /// Of IAT: the optional type that is being counted, and how many there were.
    optional: (usize, u64),
}

impl Addenda {
    /// What the entry announces.
    pub(super) fn announced(entry: &Record<'_>, class: EntryClass, trace: &str) -> Result<Addenda, Fault> {
        let marked = match entry.text(79, 79) {
            "0" => false,
            "1" => true,
            other => return Err(entry.fault(format!("addenda indicator {other:?} is neither 0 nor 1"), "correct the file")),
        };
        let expected = match class {
            EntryClass::NoAddenda if marked => return Err(entry.fault("an entry of TEL has no addenda", "correct the file")),
            EntryClass::NoAddenda => 0,
            EntryClass::OneAddenda => u64::from(marked),
            EntryClass::Ctx => entry.number(55, 58, "number of addenda")?,
            EntryClass::Iat => entry.number(13, 16, "number of addenda")?,
        };
        let least = IAT_MANDATORY.len() as u64;
        if class == EntryClass::Iat && expected < least {
            return Err(entry.fault(format!("announces {expected} addenda, IAT has at least {least}"), "correct the file"));
        }
        if marked != (expected > 0) {
            let what = format!("announces {expected} addenda, but its addenda indicator says {}", u8::from(marked));
            return Err(entry.fault(what, "correct the file"));
        }
        let sequence = trace[trace.len() - 7..].to_owned();
        Ok(Addenda { class, entry_line: entry.line, sequence, expected, seen: 0, optional: (0, 0) })
    }

    /// Takes one addenda record of the entry.
    pub(super) fn take(&mut self, record: &Record<'_>) -> Result<(), Fault> {
        let kind = record.text(2, 3);
        if matches!(kind, "98" | "99") {
            let what = format!("addenda {kind} belongs to a return or a notification of change, which is no settlement input");
            return Err(record.fault(what, "import the file of originated entries; handle returns apart"));
        }
        self.seen += 1;
        if self.seen > self.expected {
            return Err(record.fault(format!("more addenda than the {} that their entry announces", self.expected), CUT));
        }
        if record.text(88, 94) != self.sequence {
            let what = format!("addenda of entry {} after entry {}", record.text(88, 94), self.sequence);
            return Err(record.fault(what, CUT));
        }
        let number = match self.class {
            EntryClass::Iat => self.iat(kind, record)?,
            EntryClass::NoAddenda | EntryClass::OneAddenda | EntryClass::Ctx if kind != "05" => {
                return Err(record.fault(format!("addenda of type {kind:?} where 05 is expected"), "correct the file"));
            }
            EntryClass::NoAddenda | EntryClass::OneAddenda | EntryClass::Ctx => Some(self.seen),
        };
        let Some(number) = number else { return Ok(()) };
        let found = record.number(84, 87, "addenda sequence number")?;
        // the field has four digits and starts again after 9999
        if found == number % 10_000 {
            return Ok(());
        }
        Err(record.fault(format!("addenda sequence number {found} where {number} is expected"), CUT))
    }

    /// Whether all came, when the next entry or the batch control does.
    pub(super) fn complete(&self) -> Result<(), Fault> {
        if self.seen == self.expected {
            return Ok(());
        }
        let what = format!("the entry announces {} addenda, {} follow", self.expected, self.seen);
        Err(Fault::at(self.entry_line, what, CUT))
    }

    /// The sequence number an IAT addenda record must have, if its type has one.
    fn iat(&mut self, kind: &str, record: &Record<'_>) -> Result<Option<u64>, Fault> {
        let index = usize::try_from(self.seen - 1).unwrap_or(usize::MAX);
        if let Some(mandatory) = IAT_MANDATORY.get(index) {
            if kind == *mandatory {
                return Ok(None);
            }
            return Err(record.fault(format!("addenda of type {kind:?} where {mandatory} is expected"), "correct the file"));
        }
        let later = IAT_OPTIONAL.iter().enumerate().skip(self.optional.0).find(|(_, (name, _))| *name == kind);
        let Some((which, (_, most))) = later else {
            return Err(record.fault(format!("addenda of type {kind:?} after the mandatory ones of IAT"), "correct the file"));
        };
        self.optional = if which == self.optional.0 { (which, self.optional.1 + 1) } else { (which, 1) };
        if self.optional.1 > *most {
            return Err(record.fault(format!("more than {most} addenda of type {kind}"), "correct the file"));
        }
        Ok(Some(self.optional.1))
    }
}

const CUT: &str = "transfer the file again: records are missing or out of order";
