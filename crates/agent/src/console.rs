//! Output on the program's own terminal: untrusted texts, such as names of hosts and interfaces, are escaped.

use std::io::Write;

use wg_capture::printable;

/// Prints one line on standard error, whatever the text contains.
pub fn complain(problem: &(impl ToString + ?Sized)) {
    // A reader that went away does not need it.
    let _ = writeln!(std::io::stderr(), "wiregauge-agent: {}", printable(&problem.to_string()));
}

/// Prints one line on standard output, whatever the text contains.
pub fn line(text: &(impl ToString + ?Sized)) {
    let _ = writeln!(std::io::stdout(), "{}", printable(&text.to_string()))
        .and_then(|()| std::io::stdout().flush());
}

/// Prints JSON on standard output with all control characters in strings escaped.
pub fn json(text: &str) {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let mut one = [0; 4];
        if c == '\n' || printable(c.encode_utf8(&mut one)).len() == c.len_utf8() {
            shown.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    let _ = writeln!(std::io::stdout(), "{shown}").and_then(|()| std::io::stdout().flush());
}

/// Prints one line of JSON on standard output; returns whether it was written.
pub fn say(fact: &impl serde::Serialize) -> bool {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, fact).is_ok() && out.write_all(b"\n").is_ok() && out.flush().is_ok()
}
