//! Programs of the host that already set its clock.

use std::fs;

/// Process name of each, of which the kernel stores 15 letters.
const SETTERS: [(&str, &str); 5] = [
    ("chronyd", "chronyd"),
    ("ntpd", "ntpd"),
    ("systemd-timesyn", "systemd-timesyncd"),
    ("ptp4l", "another ptp4l"),
    ("phc2sys", "another phc2sys"),
];

/// The first running program that sets the system clock, as far as the kernel shows processes.
pub fn setting_the_clock() -> Option<&'static str> {
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    setter(processes.filter_map(|one| fs::read_to_string(one.path().join("comm")).ok()))
}

fn setter(named: impl Iterator<Item = String>) -> Option<&'static str> {
    let mut found = named.filter_map(|name| {
        SETTERS.iter().find(|(short, _)| name.trim_end() == *short).map(|(_, program)| *program)
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_sets_the_clock_is_named() {
        let named = |all: &[&str]| setter(all.iter().map(|name| format!("{name}\n")));
        assert_eq!(named(&["bash", "systemd-timesyn"]), Some("systemd-timesyncd"));
        assert_eq!(named(&["chronyd"]), Some("chronyd"));
        assert_eq!(named(&["chronyc", "bash", "xntpd"]), None);
    }
}
