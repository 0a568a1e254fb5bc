//! The signs of a timeline, drawn once a page, and what they mean. Paths, not letters: fonts differ.

use super::draw::name;
use super::lanes::{Lanes, State};
use crate::event::Mark;
use maud::{Markup, html};

/// What a timeline refers to: signs around their own middle, and the hatching of a frozen process.
pub(super) fn definitions() -> Markup {
    html! {
        svg.definitions width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect.ground width="6" height="6" {}
                    rect.stripe width="2" height="6" {}
                }
                g id="sign-refused" { circle r="7" {} path.on d="M-3 -3 3 3M3 -3 -3 3" {} }
                g id="sign-damage" { path d="M0 -7.5 8 6.5H-8Z" {} path.on d="M0 -3V2M0 4V4.6" {} }
                g id="sign-kill" { rect x="-6" y="-6" width="12" height="12" {} path.on d="M-3 -3 3 3M3 -3 -3 3" {} }
                g id="sign-lost" { path.open d="M0 -6.5 6.5 0 0 6.5 -6.5 0Z" {} }
            }
        }
    }
}

const STATES: [(State, &str, &str); 5] = [
    (State::Up, "up", "process runs"),
    (State::Held, "held", "lease held, as far as its holder knows"),
    (State::Frozen, "frozen", "frozen (SIGSTOP)"),
    (State::Down, "down", "down"),
    (State::Fault, "fault", "made worse: network, clock or server"),
];

const MARKS: [(Mark, &str); 6] = [
    (Mark::Write, "write that went in"),
    (Mark::Refused, "write refused"),
    (Mark::Damage, "damage"),
    (Mark::Lost, "lease found lost"),
    (Mark::Kill, "killed"),
    (Mark::Note, "something to know"),
];

/// What is in this timeline, and nothing else.
pub(super) fn legend(lanes: &Lanes) -> Markup {
    html! {
        ul.legend {
            @for (state, class, words) in STATES {
                @if lanes.have(state) { li { (swatch(state, class)) (words) } }
            }
            @for (mark, words) in MARKS {
                @if lanes.marked(mark) { li { (sign(mark)) (words) } }
            }
        }
    }
}

fn swatch(state: State, class: &str) -> Markup {
    html! {
        svg.key width="22" height="14" aria-hidden="true" {
            @match state {
                State::Up => rect.up x="0" y="6" width="22" height="2" {},
                State::Held => rect.held x="0" y="1" width="22" height="12" rx="2" {},
                State::Frozen | State::Down | State::Fault => g class=(class) { rect.bar x="0" y="1" width="22" height="12" rx="2" {} },
            }
        }
    }
}

/// The sign of a mark, for a legend or a line of text; nothing for marks that have none.
pub(super) fn sign(mark: Mark) -> Markup {
    html! {
        @match mark {
            Mark::Refused | Mark::Damage | Mark::Kill | Mark::Lost => {
                svg.key width="18" height="16" aria-hidden="true" {
                    g class=(name(mark)) { use href={ "#sign-" (name(mark)) } x="9" y="8" {} }
                }
            },
            Mark::Write => svg.key width="18" height="14" aria-hidden="true" { rect.write x="8" y="2" width="2" height="10" {} },
            Mark::Note => svg.key width="18" height="14" aria-hidden="true" { circle.note cx="9" cy="7" r="3" {} },
            _ => {},
        }
    }
}
