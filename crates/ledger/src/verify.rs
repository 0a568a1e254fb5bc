//! The invariants of the books, each a named check. `verify` is the oracle of every test and drill.
//!
//! A check is a query for what contradicts it: no row, and it holds. The rules are written here a second time, in their own
//! words, and share no code with what settles: an oracle that calls the code it judges would agree with its mistakes.
//! The queries are plain enough for every engine; only the check of triggers has to ask each engine in its own way.

mod reversals;

pub use reversals::{Decision, Replacement, Reversal, ReversedAmount};
pub(crate) use reversals::{REVERSALS, REVERSED_AMOUNTS, with_amounts};

use domain::batch::BatchState;
use serde::Serialize;
use std::collections::BTreeMap;

/// The books, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Whether every check holds.
    pub ok: bool,
    /// Batches by state.
    pub batches: BTreeMap<BatchState, u64>,
    /// Journal entries.
    pub journal_entries: u64,
    /// Debits and credits by currency.
    pub totals: Vec<CurrencyTotal>,
    /// Every batch that was settled and is reversed, in order of id.
    pub reversals: Vec<Reversal>,
    /// Every check, in the order of [`CHECKS`].
    pub checks: Vec<Check>,
}

/// Everything posted in one currency, minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CurrencyTotal {
    /// ISO code.
    pub currency: String,
    /// Σ of debits.
    pub debits_minor: i128,
    /// Σ of credits.
    pub credits_minor: i128,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub id: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// What it means, or the first rows that contradict it.
    pub detail: String,
}

/// Name, meaning, and the query for contradictions (one text column). `None`: the engine asks in its own way.
pub type Invariant = (&'static str, &'static str, Option<&'static str>);

/// How many contradictions a check shows.
const SHOWN: usize = 5;

/// Every invariant.
pub const CHECKS: [Invariant; 14] = [
    ("entry_balances", "every journal entry has debits equal to credits, in the currency of its accounts", Some(ENTRY_BALANCES)),
    ("entry_equals_items", "every settled batch posted exactly what its lines say", Some(ENTRY_EQUALS_ITEMS)),
    ("one_live_entry_per_settled", "every settled batch has one entry per currency, not reversed", Some(ONE_LIVE_ENTRY)),
    (
        "no_entry_otherwise",
        "no batch that is not settled has a standing entry, and every entry belongs to what its kind says",
        Some(NO_ENTRY_OTHERWISE),
    ),
    ("stripes_equal_postings", "every balance stripe is the sum of its postings", Some(STRIPES_EQUAL_POSTINGS)),
    (
        "clearing_equals_rows_minus_remittance",
        "clearing is what the rows say less what was remitted, rounded and accepted: of a batch that remits, nothing",
        Some(CLEARING),
    ),
    ("identity_live", "every line of a live batch holds its identity, and nothing else does", Some(IDENTITY_LIVE)),
    ("one_live_revision", "no batch of a source lives in two revisions", Some(ONE_LIVE_REVISION)),
    ("states_legal", "every batch is in a state that its row supports", Some(STATES_LEGAL)),
    (
        "fence_monotone_per_unit",
        "within a unit no entry was written under a lower fence than one before it, or by two holders under one",
        Some(FENCE_MONOTONE),
    ),
    (
        "reversal_exact",
        "every reversal mirrors its entry, and every reversed batch was reversed once by an operator who said why",
        Some(REVERSAL_EXACT),
    ),
    ("payout_equals_postings", "every payout is booked as far as it went, and no further", Some(PAYOUT_EQUALS_POSTINGS)),
    ("append_only_triggers", "the append-only tables refuse changes", None),
    ("totals_bound", "stored totals are those of the lines, and what the source declared binds", Some(TOTALS_BOUND)),
];

const ENTRY_BALANCES: &str = "SELECT concat('entry ', e.entry_key, ': debits ', sum(CASE WHEN p.side = 'D' THEN p.amount_minor ELSE 0 END),
        ', credits ', sum(CASE WHEN p.side = 'C' THEN p.amount_minor ELSE 0 END), ', ', count(a.id), ' of ', count(p.entry_id),
        ' postings in ', e.currency) AS detail
    FROM journal_entry e LEFT JOIN posting p ON p.entry_id = e.id
    LEFT JOIN account a ON a.id = p.account_id AND a.currency = e.currency GROUP BY e.id, e.entry_key, e.currency
    HAVING count(p.entry_id) = 0 OR count(a.id) <> count(p.entry_id)
        OR sum(CASE WHEN p.side = 'D' THEN p.amount_minor ELSE 0 END) <> sum(CASE WHEN p.side = 'C' THEN p.amount_minor ELSE 0 END)
    ORDER BY e.id LIMIT 6";

const ENTRY_EQUALS_ITEMS: &str = "WITH live AS (
        SELECT id, fee_mode FROM settlement_batch WHERE state IN ('settled', 'reversed')
    ), line AS (
        SELECT i.batch_id, i.currency, 'clearing' AS code,
            CASE WHEN b.fee_mode = 'charged' AND i.kind IN ('charge', 'refund', 'chargeback', 'disbursement')
                THEN i.gross_minor ELSE i.net_minor END AS amount
        FROM batch_item i JOIN live b ON b.id = i.batch_id
        UNION ALL SELECT i.batch_id, i.currency,
            CASE WHEN i.kind = 'remittance' THEN 'bank' ELSE concat('merchant_payable:', i.merchant) END, -i.net_minor
        FROM batch_item i JOIN live b ON b.id = i.batch_id
        UNION ALL SELECT i.batch_id, i.currency, 'fee_revenue', -i.fee_minor
        FROM batch_item i JOIN live b ON b.id = i.batch_id
        WHERE b.fee_mode = 'charged' AND i.kind IN ('charge', 'refund', 'chargeback', 'disbursement')
        UNION ALL SELECT t.batch_id, t.currency, 'bank', t.declared_remittance_minor FROM batch_total t JOIN live b ON b.id = t.batch_id
        UNION ALL SELECT t.batch_id, t.currency, 'rounding_difference', t.rounding_minor FROM batch_total t JOIN live b ON b.id = t.batch_id
        UNION ALL SELECT t.batch_id, t.currency, 'suspense', t.accepted_minor FROM batch_total t JOIN live b ON b.id = t.batch_id
        UNION ALL SELECT t.batch_id, t.currency, 'clearing', -t.declared_remittance_minor FROM batch_total t JOIN live b ON b.id = t.batch_id
        UNION ALL SELECT t.batch_id, t.currency, 'clearing', -t.rounding_minor FROM batch_total t JOIN live b ON b.id = t.batch_id
        UNION ALL SELECT t.batch_id, t.currency, 'clearing', -t.accepted_minor FROM batch_total t JOIN live b ON b.id = t.batch_id
    ), both_sides AS (
        SELECT batch_id, currency, code, CASE WHEN amount > 0 THEN 'D' ELSE 'C' END AS side, sum(abs(amount)) AS expected, 0 AS posted
        FROM line WHERE amount <> 0 GROUP BY batch_id, currency, code, CASE WHEN amount > 0 THEN 'D' ELSE 'C' END
        UNION ALL
        SELECT e.batch_id, e.currency, a.code, p.side, 0, p.amount_minor
        FROM journal_entry e JOIN settlement_batch b ON b.id = e.batch_id JOIN posting p ON p.entry_id = e.id
        JOIN account a ON a.id = p.account_id WHERE e.kind = 'settle'
    )
    SELECT concat('batch ', batch_id, ' ', currency, ' ', code, ' ', side, ': lines say ', sum(expected), ', posted ', sum(posted)) AS detail
    FROM both_sides GROUP BY batch_id, currency, code, side HAVING sum(expected) <> sum(posted)
    ORDER BY batch_id, currency, code, side LIMIT 6";

/// A batch whose lines post nothing (all zero, or all withheld as fees) has no entry.
const ONE_LIVE_ENTRY: &str =
    "SELECT concat('batch ', t.batch_id, ' ', t.currency, ': ', count(e.id), ' standing entries') AS detail
    FROM batch_total t JOIN settlement_batch b ON b.id = t.batch_id AND b.state = 'settled'
    LEFT JOIN journal_entry e ON e.batch_id = t.batch_id AND e.currency = t.currency AND e.kind = 'settle'
        AND NOT EXISTS (SELECT 1 FROM journal_entry r WHERE r.reverses_entry_id = e.id)
    GROUP BY t.batch_id, t.currency, b.fee_mode
    HAVING count(e.id) > 1 OR (count(e.id) = 0 AND EXISTS (SELECT 1 FROM batch_item i WHERE i.batch_id = t.batch_id
        AND i.currency = t.currency AND (i.net_minor <> 0 OR (b.fee_mode = 'charged' AND i.fee_minor <> 0
            AND i.kind IN ('charge', 'refund', 'chargeback', 'disbursement')))))
    ORDER BY t.batch_id, t.currency LIMIT 6";

/// A settlement belongs to a batch, a reversal to the settlement that it takes back, a payout's entry to the payout.
const NO_ENTRY_OTHERWISE: &str = "SELECT detail FROM (
        SELECT concat('batch ', b.id, ' is ', b.state, ' and has entry ', e.entry_key) AS detail
        FROM journal_entry e JOIN settlement_batch b ON b.id = e.batch_id
        WHERE e.kind = 'settle' AND b.state <> 'settled' AND NOT EXISTS (SELECT 1 FROM journal_entry r WHERE r.reverses_entry_id = e.id)
        UNION ALL
        SELECT concat('entry ', e.entry_key, ' is a ', e.kind, ' of nothing')
        FROM journal_entry e LEFT JOIN settlement_batch b ON b.id = e.batch_id LEFT JOIN payout o ON o.id = e.payout_id
        LEFT JOIN journal_entry r ON r.id = e.reverses_entry_id
        WHERE CASE WHEN e.kind = 'settle' AND b.id IS NOT NULL AND e.reverses_entry_id IS NULL AND e.payout_id IS NULL THEN 0
            WHEN e.kind = 'reverse' AND r.kind = 'settle' AND r.batch_id = e.batch_id AND r.currency = e.currency AND e.payout_id IS NULL THEN 0
            WHEN e.kind = 'payout' AND o.id IS NOT NULL AND e.batch_id IS NULL
                AND (e.reverses_entry_id IS NULL OR r.payout_id = e.payout_id) THEN 0 ELSE 1 END = 1) d
    LIMIT 6";

const STRIPES_EQUAL_POSTINGS: &str = "WITH both_sides AS (
        SELECT account_id, unit, debit_minor AS stripe_d, credit_minor AS stripe_c, 0 AS posted_d, 0 AS posted_c FROM account_balance
        UNION ALL
        SELECT p.account_id, e.unit, 0, 0, CASE WHEN p.side = 'D' THEN p.amount_minor ELSE 0 END,
            CASE WHEN p.side = 'C' THEN p.amount_minor ELSE 0 END
        FROM posting p JOIN journal_entry e ON e.id = p.entry_id
    )
    SELECT concat('account ', a.code, ' ', a.currency, ' unit ', s.unit, ': stripe ', sum(s.stripe_d), ' D ', sum(s.stripe_c),
        ' C, postings ', sum(s.posted_d), ' D ', sum(s.posted_c), ' C') AS detail
    FROM both_sides s JOIN account a ON a.id = s.account_id GROUP BY a.code, a.currency, s.account_id, s.unit
    HAVING sum(s.stripe_d) <> sum(s.posted_d) OR sum(s.stripe_c) <> sum(s.posted_c) ORDER BY s.account_id, s.unit LIMIT 6";

/// A batch remits where something is taken out of clearing: by a line, by what is declared, or as a difference. (Remittance lines
/// that the source is not expected to have, and that an operator accepted, are put back in full: that batch does not remit.)
const CLEARING: &str = "WITH due AS (
        SELECT t.batch_id, t.currency, CASE WHEN b.fee_mode = 'withheld' THEN t.net_minor ELSE t.net_minor + coalesce((
                SELECT sum(i.fee_minor) FROM batch_item i WHERE i.batch_id = t.batch_id AND i.currency = t.currency
                AND i.kind NOT IN ('fee', 'adjustment', 'remittance')), 0) END
            - t.remittance_minor - t.declared_remittance_minor - t.rounding_minor - t.accepted_minor AS expected,
            CASE WHEN t.declared_remittance_minor <> 0 OR t.remittance_minor + t.rounding_minor + t.accepted_minor <> 0
                THEN 1 ELSE 0 END AS remits
        FROM batch_total t JOIN settlement_batch b ON b.id = t.batch_id AND b.state = 'settled'
    ), posted AS (
        SELECT e.batch_id, e.currency, sum(CASE WHEN p.side = 'D' THEN p.amount_minor ELSE -p.amount_minor END) AS clearing
        FROM journal_entry e JOIN posting p ON p.entry_id = e.id JOIN account a ON a.id = p.account_id AND a.code = 'clearing'
        WHERE e.kind = 'settle' GROUP BY e.batch_id, e.currency
    )
    SELECT concat('batch ', d.batch_id, ' ', d.currency, ': clearing ', coalesce(p.clearing, 0), ', rows less remittance ', d.expected) AS detail
    FROM due d LEFT JOIN posted p ON p.batch_id = d.batch_id AND p.currency = d.currency
    WHERE coalesce(p.clearing, 0) <> d.expected OR (d.remits = 1 AND d.expected <> 0) ORDER BY d.batch_id, d.currency LIMIT 6";

const IDENTITY_LIVE: &str = "SELECT detail FROM (
        SELECT concat('batch ', i.batch_id, ' line ', i.line_no, ' does not hold ', i.dedupe_key) AS detail
        FROM batch_item i JOIN settlement_batch b ON b.id = i.batch_id AND b.state IN ('pending', 'settling', 'settled', 'quarantined')
        LEFT JOIN settled_item s ON s.source = b.source AND s.dedupe_key = i.dedupe_key AND s.batch_id = i.batch_id AND s.line_no = i.line_no
        WHERE s.batch_id IS NULL
        UNION ALL
        SELECT concat('identity ', s.dedupe_key, ' is held by batch ', s.batch_id, ', which is ', coalesce(b.state, 'gone'))
        FROM settled_item s LEFT JOIN settlement_batch b ON b.id = s.batch_id
        WHERE b.id IS NULL OR b.state IN ('cancelled', 'reversed')) d
    LIMIT 6";

const ONE_LIVE_REVISION: &str =
    "SELECT concat('batch ', source, ' ', external_batch_id, ': ', count(*), ' live revisions') AS detail
    FROM settlement_batch WHERE state NOT IN ('cancelled', 'reversed') GROUP BY source, external_batch_id HAVING count(*) > 1
    ORDER BY source, external_batch_id LIMIT 6";

const STATES_LEGAL: &str =
    "SELECT concat('batch ', id, ' is ', state, ' with settled_at ', coalesce(CAST(settled_at AS CHAR(40)), 'unset'),
        ', attempts ', attempts, ', break reason ', coalesce(break_reason, 'unset')) AS detail
    FROM settlement_batch
    WHERE state NOT IN ('pending', 'settling', 'settled', 'broken', 'quarantined', 'cancelled', 'reversed')
        OR (state IN ('settled', 'reversed')) <> (settled_at IS NOT NULL)
        OR (state = 'broken' AND break_reason IS NULL) OR (state IN ('settling', 'quarantined') AND attempts = 0)
    ORDER BY id LIMIT 6";

const FENCE_MONOTONE: &str = "WITH step AS (
        SELECT entry_key, unit, fence_generation AS g, fence_token AS t, holder AS h, lag(fence_generation) OVER unit_by_id AS before_g,
            lag(fence_token) OVER unit_by_id AS before_t, lag(holder) OVER unit_by_id AS before_h
        FROM journal_entry WHERE fence_generation > 0 WINDOW unit_by_id AS (PARTITION BY unit ORDER BY id)
    )
    SELECT detail FROM (
        SELECT concat('entry ', entry_key, ' in unit ', unit, ': fence ', g, '.', t, ' after ', before_g, '.', before_t,
            ', holder ', h, ' after ', before_h) AS detail
        FROM step WHERE g < before_g OR (g = before_g AND (t < before_t OR (t = before_t AND h <> before_h)))
        UNION ALL
        SELECT concat('unit ', u.unit, ': entry ', s.entry_key, ' has fence ', s.g, '.', s.t, ' above the registered ', u.generation, '.', u.token)
        FROM step s JOIN unit_fence u ON u.unit = s.unit WHERE s.g > u.generation OR (s.g = u.generation AND s.t > u.token)
        UNION ALL
        SELECT concat('unit ', u.unit, ': entry ', s.entry_key, ' of holder ', s.h, ' has fence ', s.g, '.', s.t, ', which is registered to ', u.holder)
        FROM step s JOIN unit_fence u ON u.unit = s.unit AND u.generation = s.g AND u.token = s.t WHERE s.h <> u.holder) d
    LIMIT 6";

/// What is taken back without a word is as wrong as what is taken back by another amount.
const REVERSAL_EXACT: &str = "WITH both_sides AS (
        SELECT r.id, r.entry_key, p.account_id, p.side, p.amount_minor AS amount
        FROM journal_entry r JOIN posting p ON p.entry_id = r.id WHERE r.reverses_entry_id IS NOT NULL
        UNION ALL
        SELECT r.id, r.entry_key, p.account_id, CASE WHEN p.side = 'D' THEN 'C' ELSE 'D' END, -p.amount_minor
        FROM journal_entry r JOIN posting p ON p.entry_id = r.reverses_entry_id
    ), said AS (
        SELECT subject, count(*) AS times FROM audit_log WHERE action = 'batch reverse' GROUP BY subject
    )
    SELECT detail FROM (
        SELECT concat('reversal ', entry_key, ' account ', account_id, ' ', side, ': off by ', sum(amount)) AS detail
        FROM both_sides GROUP BY id, entry_key, account_id, side HAVING sum(amount) <> 0
        UNION ALL
        SELECT concat('batch ', b.id, ' is ', b.state, ', and the audit log has it reversed ', coalesce(s.times, 0), ' times')
        FROM settlement_batch b LEFT JOIN said s ON s.subject = CAST(b.id AS CHAR(20))
        WHERE coalesce(s.times, 0) <> CASE WHEN b.state = 'reversed' THEN 1 ELSE 0 END) d
    LIMIT 6";

/// One step is one entry with one posting on each side. What is returned was paid: the bank has it again, and the merchant is owed it.
const PAYOUT_EQUALS_POSTINGS: &str = "WITH step AS (
        SELECT id, currency, amount_minor, 'cut' AS name, concat('merchant_payable:', merchant) AS debited, 'in_transit' AS credited FROM payout
        UNION ALL SELECT id, currency, amount_minor, 'paid', 'in_transit', 'bank' FROM payout WHERE state IN ('paid', 'returned')
        UNION ALL SELECT id, currency, amount_minor, 'undone', CASE WHEN state = 'returned' THEN 'bank' ELSE 'in_transit' END,
            concat('merchant_payable:', merchant) FROM payout WHERE state IN ('declined', 'failed', 'returned')
    ), both_sides AS (
        SELECT id, name, currency, debited AS code, 'D' AS side, amount_minor AS expected, 0 AS booked FROM step
        UNION ALL SELECT id, name, currency, credited, 'C', amount_minor, 0 FROM step
        UNION ALL
        SELECT o.id, e.payout_step, e.currency, a.code, p.side, 0, p.amount_minor
        FROM journal_entry e JOIN payout o ON o.id = e.payout_id JOIN posting p ON p.entry_id = e.id JOIN account a ON a.id = p.account_id
        WHERE e.kind = 'payout'
    )
    SELECT concat('payout ', id, ' ', name, ' ', currency, ' ', code, ' ', side, ': ', sum(expected), ', booked ', sum(booked)) AS detail
    FROM both_sides GROUP BY id, name, currency, code, side HAVING sum(expected) <> sum(booked) ORDER BY id, name, currency, code, side LIMIT 6";

const TOTALS_BOUND: &str = "WITH counted AS (
        SELECT batch_id, currency, count(*) AS items,
            sum(CASE WHEN kind <> 'remittance' AND gross_minor > 0 THEN gross_minor ELSE 0 END) AS debit,
            sum(CASE WHEN kind <> 'remittance' AND gross_minor < 0 THEN -gross_minor ELSE 0 END) AS credit,
            sum(CASE WHEN kind <> 'remittance' THEN gross_minor ELSE 0 END) AS gross,
            sum(CASE WHEN kind <> 'remittance' THEN fee_minor ELSE 0 END) AS fee,
            sum(CASE WHEN kind = 'remittance' THEN -net_minor ELSE 0 END) AS remittance
        FROM batch_item GROUP BY batch_id, currency
    )
    SELECT detail FROM (
        SELECT concat('batch ', coalesce(t.batch_id, c.batch_id), ' ', coalesce(t.currency, c.currency), ': stored totals are not those of its lines') AS detail
        FROM counted c LEFT JOIN batch_total t ON t.batch_id = c.batch_id AND t.currency = c.currency
        WHERE t.batch_id IS NULL OR t.items <> c.items OR t.debit_minor <> c.debit OR t.credit_minor <> c.credit
            OR t.gross_minor <> c.gross OR t.fee_minor <> c.fee OR t.net_minor <> c.gross - c.fee OR t.remittance_minor <> c.remittance
        UNION ALL
        SELECT concat('batch ', t.batch_id, ' ', t.currency, ': ', t.items, ' items stored, no lines')
        FROM batch_total t WHERE t.items <> 0 AND NOT EXISTS (SELECT 1 FROM batch_item i WHERE i.batch_id = t.batch_id AND i.currency = t.currency)
        UNION ALL
        SELECT concat('batch ', batch_id, ' ', currency, ': rounds by ', rounding_minor, ' with a tolerance of ', tolerance_minor)
        FROM batch_total WHERE abs(rounding_minor) > tolerance_minor
        UNION ALL
        SELECT concat('batch ', batch_id, ' ', currency, ': remits ', declared_remittance_minor, ' of a declared net of ',
            coalesce(declared_net_minor, 0))
        FROM batch_total WHERE declared_remittance_minor NOT IN (0, coalesce(declared_net_minor, 0))
        UNION ALL
        SELECT concat('batch ', t.batch_id, ' ', t.currency, ': settled though what its source declares does not bind')
        FROM batch_total t JOIN settlement_batch b ON b.id = t.batch_id AND b.state = 'settled'
        WHERE t.difference_minor <> t.accepted_minor OR (b.break_reason IS NULL AND (
            t.declared_items <> t.items OR abs(t.declared_debit_minor - t.debit_minor) > t.tolerance_minor
            OR abs(t.declared_credit_minor - t.credit_minor) > t.tolerance_minor OR abs(t.declared_gross_minor - t.gross_minor) > t.tolerance_minor
            OR abs(t.declared_fee_minor - t.fee_minor) > t.tolerance_minor OR abs(t.declared_net_minor - t.net_minor) > t.tolerance_minor))
        UNION ALL
        SELECT concat('batch ', b.id, ': settled with a break (', b.break_reason, ') that nobody accepted')
        FROM settlement_batch b WHERE b.state = 'settled' AND b.break_reason IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM audit_log l WHERE l.action = 'batch accept' AND l.subject = CAST(b.id AS CHAR(20)))) d
    LIMIT 6";

/// What the headings of a report are read from: state and count, entries, debits and credits as text (they may leave 64 bits).
pub const STATES: &str = "SELECT state, count(*) AS batches FROM settlement_batch GROUP BY state";
/// See [`STATES`].
pub const ENTRIES: &str = "SELECT count(*) FROM journal_entry";
/// See [`STATES`].
pub const TOTALS: &str = "SELECT e.currency, concat(sum(CASE WHEN p.side = 'D' THEN p.amount_minor ELSE 0 END), '') AS debits,
        concat(sum(CASE WHEN p.side = 'C' THEN p.amount_minor ELSE 0 END), '') AS credits
    FROM journal_entry e JOIN posting p ON p.entry_id = e.id GROUP BY e.currency ORDER BY e.currency";

/// The tables that are only ever added to.
pub const APPEND_ONLY: [&str; 5] = ["audit_log", "batch_item", "fence_rejection", "journal_entry", "posting"];

/// A check from the rows that contradict it.
#[must_use]
pub fn check(id: &'static str, meaning: &str, mut contradictions: Vec<String>) -> Check {
    if contradictions.is_empty() {
        return Check { id, ok: true, detail: meaning.to_owned() };
    }
    if contradictions.len() > SHOWN {
        contradictions.truncate(SHOWN);
        contradictions.push("and more".to_owned());
    }
    Check { id, ok: false, detail: contradictions.join("; ") }
}

/// A sum that the database wrote as text.
///
/// # Errors
/// Where it is no whole number of 128 bits.
pub fn parse_sum(text: &str) -> Result<i128, crate::LedgerError> {
    text.parse().map_err(|_| crate::LedgerError::Schema(format!("a total of postings is {text:?}, not a whole number")))
}
