//! Owns: of what templates, texts and expressions are made (`words.json`).
//! Never: puts them together.

use std::sync::LazyLock;

use serde::Deserialize;

/// All words.
pub(in super::super) static WORDS: LazyLock<Words> =
    LazyLock::new(|| serde_json::from_str(include_str!("words.json")).expect("words.json has all words"));

/// Words by what they are for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Words {
    /// Functions with the kinds of their arguments: a text (`s`), a number (`n`), a small one (`k`), a condition (`b`), a
    /// list (`l`), a map (`m`), a map of one key (`o`), anything (`v`); `?` is up to three of anything.
    pub(in super::super) signatures: Vec<(String, String)>,
    /// Functions that are not drawn: refused by the hub, because they give another result each time, or slow
    /// (`derivePassword`, of which each seed has one call).
    pub(in super::super) left_out: Vec<String>,
    /// Texts.
    pub(super) texts: Vec<String>,
    /// Numbers, and what is read as one.
    pub(super) numbers: Vec<String>,
    /// Paths of variables.
    pub(super) paths: Vec<String>,
    /// Formats of `printf`.
    pub(super) formats: Vec<String>,
    /// Constraints for versions.
    pub(super) constraints: Vec<String>,
    /// Versions, and what is none.
    pub(super) versions: Vec<String>,
    /// Methods of versions.
    pub(super) methods: Vec<String>,
    /// Those that another version is given to.
    pub(super) methods_of_two: Vec<String>,
    /// Layouts of times.
    pub(super) layouts: Vec<String>,
    /// Times, and what is none.
    pub(super) moments: Vec<String>,
    /// Layouts with times that have them.
    pub(super) fitting: Vec<(String, String)>,
    /// Methods of times.
    pub(super) methods_of_times: Vec<String>,
    /// Texts between actions.
    pub(super) between: Vec<String>,
    /// Tokens of templates.
    pub(super) tokens: Vec<String>,
    /// Scalars of YAML, and what is none.
    pub(super) scalars: Vec<String>,
    /// Keys.
    pub(super) keys: Vec<String>,
    /// Texts between a key and its value.
    pub(super) colons: Vec<String>,
    /// Texts behind the colon of a key of several lines.
    pub(super) after_colon: Vec<String>,
    /// Ends of a line.
    pub(super) ends: Vec<String>,
    /// Beginnings of a list's item.
    pub(super) dashes: Vec<String>,
    /// Texts before a document.
    pub(super) before: Vec<String>,
    /// Texts behind a document.
    pub(super) behind: Vec<String>,
    /// Texts to put anywhere.
    pub(super) stray: Vec<String>,
    /// Pieces of a regular expression.
    pub(super) pieces: Vec<String>,
    /// Texts that are looked through.
    pub(super) subjects: Vec<String>,
    /// Uses of an expression `.p` and a text `.s`.
    pub(super) calls: Vec<String>,
}
