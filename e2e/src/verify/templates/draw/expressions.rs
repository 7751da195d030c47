//! Owns: regular expressions, right ones and wrong ones, and what is done with them.

use serde_json::json;

use super::{Case, Draw, words::WORDS};

/// Most pieces of one.
const PIECES_MAX: usize = 6;

/// An expression and a text that it is held against.
pub(super) fn case(draw: &mut Draw) -> Case {
    let count = 1 + draw.below(PIECES_MAX);
    let mut expression = draw.row(&WORDS.pieces, count);
    if draw.percent(30) {
        let (not, count) = (draw.one(&["", "^"]), 1 + draw.below(3));
        let class = draw.row(&WORDS.pieces, count);
        expression = format!("[{not}{class}]{}", draw.one(&["", "+", "a"]));
    }
    Case {
        template: format!("{{{{ {} | toJson | quote }}}}", draw.one(&WORDS.calls)),
        variables: json!({"p": expression, "s": draw.one(&WORDS.subjects)}),
    }
}
