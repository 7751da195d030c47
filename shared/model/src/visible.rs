//! Owns: how text that somebody else chose is made safe to show: in a condition, an Event, a log line, a message.
//! Never: shortens it.

/// Returns the text with everything escaped that cannot be seen: control characters, direction marks, marks without a
/// width. So it neither begins a line nor changes how one is shown. Visible characters stay as they are, quotes too.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut pair = String::with_capacity(8);
    for character in text.chars() {
        if character.is_ascii_graphic() || character == ' ' {
            shown.push(character);
            continue;
        }
        // Behind a letter, where a combining mark is no sign of its own.
        pair.clear();
        pair.extend(['x', character]);
        shown.extend(pair.escape_debug().skip(1));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_and_the_rest_stays() {
        for (text, shown) in [
            ("plain \"quoted\" it's \\", "plain \"quoted\" it's \\"),
            ("a\nb\tc", "a\\nb\\tc"),
            ("\u{1b}[31mred\u{9b}", "\\u{1b}[31mred\\u{9b}"),
            ("a\u{202e}b\u{2066}c\u{200b}", "a\\u{202e}b\\u{2066}c\\u{200b}"),
            (
                "\u{fc}ber e\u{301} \u{0939}\u{093f} \u{6f22}",
                "\u{fc}ber e\u{301} \u{0939}\u{093f} \u{6f22}",
            ),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}
