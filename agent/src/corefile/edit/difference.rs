//! Owns: two texts as the lines that differ, with some around them, for people.
//! Never: knows a Corefile; the texts may be any.

/// Number of unchanged lines shown around a difference.
const AROUND: usize = 2;

/// The lines that differ, each with `-` or `+` in front, and some around them; the first line says where they are.
pub fn difference(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let head = same(&mut old.iter().zip(&new));
    let tail = same(&mut old[head..].iter().rev().zip(new[head..].iter().rev()));
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    if head == old_end && head == new_end {
        return Vec::new();
    }
    let first = head.saturating_sub(AROUND);
    let last = (old_end + AROUND).min(old.len());
    let mut lines = vec![format!("@@ line {} @@", first + 1)];
    lines.extend(old[first..head].iter().map(|line| shown(' ', line)));
    lines.extend(middle(&old[head..old_end], &new[head..new_end]));
    lines.extend(old[old_end..last].iter().map(|line| shown(' ', line)));
    lines
}

/// Lines that differ at both ends. Not the shortest answer for any two texts, but for lines that were changed in their
/// place, added or removed.
fn middle(mut old: &[&str], mut new: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    while let ([one, old_rest @ ..], [other, new_rest @ ..]) = (old, new) {
        let (goes, comes) = if one == other {
            lines.push(shown(' ', one));
            (true, true)
        } else if old_rest.first() == Some(other) {
            lines.push(shown('-', one));
            (true, false)
        } else if new_rest.first() == Some(one) {
            lines.push(shown('+', other));
            (false, true)
        } else {
            lines.extend([shown('-', one), shown('+', other)]);
            (true, true)
        };
        old = if goes { old_rest } else { old };
        new = if comes { new_rest } else { new };
    }
    lines.extend(old.iter().map(|line| shown('-', line)));
    lines.extend(new.iter().map(|line| shown('+', line)));
    lines
}

/// A line as it is printed: what a terminal would obey is written out.
fn shown(sign: char, line: &str) -> String {
    let printed = |letter: char| match letter {
        '\t' => letter.to_string(),
        letter if letter.is_control() => letter.escape_default().to_string(),
        letter => letter.to_string(),
    };
    format!("{sign} {}", line.chars().map(printed).collect::<String>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changed_lines_are_shown_with_some_around_them() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        for (after, shown) in [
            (before, vec![]),
            (
                "a\nb\nc\nD\nX\ne\nf\ng\nh\n",
                vec!["@@ line 2 @@", "  b", "  c", "- d", "+ D", "+ X", "  e", "  f"],
            ),
            (
                "a\nb\nc\nD\ne\ng\nh\n",
                vec![
                    "@@ line 2 @@",
                    "  b",
                    "  c",
                    "- d",
                    "+ D",
                    "  e",
                    "- f",
                    "  g",
                    "  h",
                ],
            ),
            (
                "X\na\nb\nc\nd\ne\nf\ng\nh\n",
                vec!["@@ line 1 @@", "+ X", "  a", "  b"],
            ),
            ("a\nb\nc\nd\ne\nf\ng\n", vec!["@@ line 6 @@", "  f", "  g", "- h"]),
        ] {
            assert_eq!(difference(before, after), shown, "{after}");
        }
        assert_eq!(
            difference("a\u{1b}[1m\n", "\tb\n"),
            ["@@ line 1 @@", "- a\\u{1b}[1m", "+ \tb"]
        );
    }

    proptest! {
        /// Applying the difference by hand gives the new text: lines with ` ` and `-` make up the old one, ` ` and `+`
        /// the new one.
        #[test]
        fn the_lines_are_those_of_the_texts(before in "([abc]\n){0,8}", after in "([abc]\n){0,8}") {
            let lines = difference(&before, &after);
            let of = |sign| {
                let of = lines.iter().skip(1).filter(move |line| line.starts_with([' ', sign]));
                of.map(|line| format!("{}\n", &line[2..])).collect::<String>()
            };
            if before == after {
                prop_assert!(lines.is_empty());
            } else {
                prop_assert!(before.contains(&of('-')), "{before} {lines:?}");
                prop_assert!(after.contains(&of('+')), "{after} {lines:?}");
            }
        }
    }
}
