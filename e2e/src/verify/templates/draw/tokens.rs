//! Owns: rows of what templates are written with, most of which are none.

use rand::RngExt;

use super::{Case, Draw, actions::variables, words::WORDS};

/// Most tokens of one.
const TOKENS_MAX: usize = 14;

/// A row of tokens, in an action or as they come.
pub(super) fn case(draw: &mut Draw) -> Case {
    let count = draw.below(TOKENS_MAX);
    let tokens: Vec<String> = (0..count).map(|_| token(draw)).collect();
    let template = if draw.percent(50) {
        format!("{{{{ {} }}}}", tokens.join(" "))
    } else {
        tokens.concat()
    };
    Case {
        template,
        variables: variables(),
    }
}

fn token(draw: &mut Draw) -> String {
    if draw.percent(5) {
        draw.0.random::<char>().to_string()
    } else {
        draw.one(&WORDS.tokens).to_owned()
    }
}
