//! Owns: one file with several variants in it: each function that an edit changes chooses between copies of its body.
//! Never: reads or writes files; decides what a variant is.

use std::{collections::BTreeMap, ops::RangeInclusive};

use super::{
    Number,
    edit::Edit,
    functions::{Function, functions},
};

/// A file with variants in it.
#[derive(Debug, Clone)]
pub(super) struct Woven {
    /// Its text.
    pub(super) text: String,
    /// Lines and the copies that they belong to, from one on.
    pub(super) copies: Vec<(RangeInclusive<usize>, Number)>,
}

/// Why each of these edits cannot be chosen while the product runs, by the number of its variant.
pub(super) fn unfit(text: &str, edits: &[(Number, Edit)]) -> syn::Result<BTreeMap<Number, &'static str>> {
    let functions = functions(text)?;
    let unfit = edits.iter().filter_map(|(number, edit)| {
        let why = match function_of(&functions, edit) {
            Some(at) => functions[at].obstacle?,
            None => "it changes more than the body of one function",
        };
        Some((*number, why))
    });
    Ok(unfit.collect())
}

/// The file with all of these edits, each of which lies in a function's body. `chosen` is an expression: the number
/// of the variant that this process is.
pub(super) fn weave(text: &str, edits: &[(Number, Edit)], chosen: &str) -> syn::Result<Woven> {
    let functions = functions(text)?;
    let mut changed: BTreeMap<usize, BTreeMap<Number, Vec<&Edit>>> = BTreeMap::new();
    for (number, edit) in edits {
        let Some(at) = function_of(&functions, edit) else {
            continue;
        };
        let variants = changed.entry(at).or_default();
        variants.entry(*number).or_default().push(edit);
    }
    let mut woven = Writer::default();
    let mut from = 0;
    for (at, variants) in changed {
        let body = functions[at].body.clone();
        let unchanged = &text[body.clone()];
        woven.write(&text[from..body.start]);
        woven.write(&format!("\nmatch {chosen} {{\n"));
        for (number, edits) in variants {
            let copy = Edit::apply_all(unchanged, body.start, edits.into_iter());
            woven.copy_of(number, &format!("{number} => {{\n{copy}\n}}\n"));
        }
        woven.write(&format!("_ => {{\n{unchanged}\n}}\n}}\n"));
        from = body.end;
    }
    woven.write(&text[from..]);
    Ok(woven.0)
}

fn function_of(functions: &[Function], edit: &Edit) -> Option<usize> {
    functions
        .iter()
        .position(|function| function.body.start <= edit.range.start && edit.range.end <= function.body.end)
}

struct Writer(Woven);

impl Default for Writer {
    fn default() -> Self {
        let (text, copies) = (String::new(), Vec::new());
        Self(Woven { text, copies })
    }
}

impl Writer {
    fn write(&mut self, text: &str) {
        self.0.text.push_str(text);
    }

    fn copy_of(&mut self, number: Number, text: &str) {
        let first = self.line();
        self.write(text);
        self.0.copies.push((first..=self.line() - 1, number));
    }

    /// The line that is written next.
    fn line(&self) -> usize {
        self.0.text.matches('\n').count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn f(x: u8) -> u8 {\n    x + 1 // end\n}\nfn g() {}\nconst N: u8 = 1;\n";

    fn edit(find: &str, replacement: &str) -> Edit {
        let start = TEXT.find(find).unwrap();
        Edit {
            range: start..start + find.len(),
            replacement: replacement.to_owned(),
        }
    }

    #[test]
    fn each_changed_function_chooses_between_copies_of_its_body() {
        let edits = [
            (1, edit("+", "-")),
            (2, edit("x +", "y +")),
            (2, edit("1 //", "2 //")),
        ];
        let woven = weave(TEXT, &edits, "chosen()").unwrap();
        let lines: Vec<&str> = woven
            .text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let expected = [
            "fn f(x: u8) -> u8 {",
            "match chosen() {",
            "1 => {",
            "x - 1 // end",
            "}",
            "2 => {",
            "y + 2 // end",
            "}",
            "_ => {",
            "x + 1 // end",
            "}",
            "}",
            "}",
            "fn g() {}",
            "const N: u8 = 1;",
        ];
        assert_eq!(lines, expected);
        functions(&woven.text).unwrap();
        let all: Vec<&str> = woven.text.lines().collect();
        for (lines, number) in woven.copies {
            assert_eq!(all[lines.start() - 1], format!("{number} => {{"));
            assert_eq!(all[lines.end() - 1], "}");
        }
    }

    #[test]
    fn what_is_in_no_function_does_not_fit() {
        let across = Edit {
            range: 10..60,
            replacement: String::new(),
        };
        let edits = [(1, edit("+", "-")), (2, edit("1;", "2;")), (3, across)];
        let unfit = unfit(TEXT, &edits).unwrap();
        assert_eq!(unfit.into_keys().collect::<Vec<_>>(), [2, 3]);
    }
}
