//! Untrusted texts on a terminal and in names.

use std::borrow::Cow;

/// The text with all characters escaped that control a terminal or are invisible: control characters, line ends,
/// direction marks, characters of no width. All others, quotation marks and backslashes included, stay.
///
/// ```
/// # use wg_capture::printable;
/// assert_eq!(printable("port 1, Zürich"), "port 1, Zürich");
/// assert_eq!(printable("a\u{1b}[2J\nb\u{202e}"), "a\\u{1b}[2J\\nb\\u{202e}");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_printable(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_debug());
        }
    }
    Cow::Owned(shown)
}

fn is_printable(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().eq([c])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_is_left_that_a_terminal_obeys(text: String) {
            let shown = printable(&text);
            let bad = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' | '\u{feff}');
            prop_assert!(!shown.chars().any(bad));
            prop_assert_eq!(&printable(&shown), &shown);
        }
    }
}
