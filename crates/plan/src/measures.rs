//! The measures a limit can name, from a table that is made from the definitions of the log processor.
//!
//! `tools/limit_names.py` writes the table from the one list of definitions, from which the schema and the reference page
//! have the names, too: what is judged and what can be named are the same. A table of its own in this crate was tried: it
//! stayed behind every time a measure was added.
//!
//! The common percentiles are names of the table. Any other stands for itself where the measure has `p*`.

use std::sync::LazyLock;

/// One line for each name: the name, what it is written in, what its flow must have (`-`: nothing), and what a lost
/// message is to it (`-`: neither).
const TABLE: &str = include_str!("measures.txt");

/// What the bound on a measure is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// A time that cannot be negative.
    Time,
    /// A time before or after an instant.
    SignedTime,
    /// A whole number.
    Count,
    /// A mean of whole numbers.
    Number,
    /// A share of 1.
    Share,
    /// Bits per second.
    Rate,
    /// Frames per second.
    Frequency,
    /// Bits, more or less than none.
    Bits,
}

/// What a flow must have, or the measure is none of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Relay,
    Deadline,
    /// It is counted per run and belongs to no flow.
    Run,
}

/// What a lost message is to a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Losses {
    Neither,
    /// It counts against it.
    Counted,
    /// It has no value in it.
    Missing,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure<'a> {
    pub(crate) name: &'a str,
    pub(crate) dimension: Dimension,
    pub(crate) needs: Needs,
    pub(crate) losses: Losses,
}

/// In the order of the table. The table is part of the program: what is wrong in it is a fault of the program, and
/// the first test of this module finds it.
static ALL: LazyLock<Vec<Measure<'static>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| read(line).unwrap_or_else(|| panic!("internal error: measures.txt: {line}"))).collect()
});

fn read(line: &'static str) -> Option<Measure<'static>> {
    let mut words = line.split(' ');
    let (name, dimension, needs, losses) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let dimension = match dimension {
        "time" => Dimension::Time,
        "signed-time" => Dimension::SignedTime,
        "count" => Dimension::Count,
        "number" => Dimension::Number,
        "share" => Dimension::Share,
        "rate" => Dimension::Rate,
        "frequency" => Dimension::Frequency,
        "bits" => Dimension::Bits,
        _ => return None,
    };
    let needs = match needs {
        "-" => Needs::Nothing,
        "relay" => Needs::Relay,
        "deadline" => Needs::Deadline,
        "run" => Needs::Run,
        _ => return None,
    };
    let losses = match losses {
        "-" => Losses::Neither,
        "counted" => Losses::Counted,
        "missing" => Losses::Missing,
        _ => return None,
    };
    words.next().is_none().then_some(Measure { name, dimension, needs, losses })
}

/// What stands in the table for every percentile of a measure.
const ANY_PERCENTILE: &str = "p*";

/// Every measure a limit can name, of percentiles the common ones.
pub fn measures() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|measure| measure.name).filter(|name| !name.ends_with(ANY_PERCENTILE))
}

/// The measure of this name.
pub(crate) fn find(name: &str) -> Option<Measure<'_>> {
    let known = |name: &str| ALL.iter().find(|measure| measure.name == name);
    let found = known(name).filter(|_| !name.ends_with(ANY_PERCENTILE)).or_else(|| {
        let (measure, _) = percentile(name)?;
        known(&format!("{measure}.{ANY_PERCENTILE}"))
    });
    found.map(|measure| Measure { name, ..*measure })
}

/// The measure and the percentile that a name ends in, in billionths of everything: `latency.p99.9` is (`latency`,
/// 999 000 000). Each has one name: more than 0 and less than 100, without zeros that say nothing.
fn percentile(name: &str) -> Option<(&str, u64)> {
    let (measure, number) = name.split_once(".p")?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str, most| text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits(whole, 2) && digits(fraction, 7) && !whole.is_empty();
    let padded =
        (whole.len() > 1 && whole.starts_with('0')) || fraction.ends_with('0') || number.ends_with('.');
    if !plain || padded {
        return None;
    }
    let billionths = format!("{whole}{fraction:0<7}").parse().ok()?;
    (billionths > 0).then_some((measure, billionths))
}

/// Messages that the percentile a name ends in needs before it is reported: `ln 0.05 / ln q`, rounded up, so that the
/// largest of them lies above the quantile with 95 % confidence; below the median the least below it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number from 1 to 3e9")]
pub(crate) fn needed(name: &str) -> Option<u64> {
    const ALL_OF_THEM: u64 = 1_000_000_000;
    let (_, billionths) = percentile(name)?;
    let beyond = billionths.min(ALL_OF_THEM - billionths) as f64 / ALL_OF_THEM as f64;
    Some((0.05_f64.ln() / (-beyond).ln_1p()).ceil() as u64)
}

/// What the author of an unknown name may write: statistics of the measure it begins with, else what is spelt like it.
pub(crate) fn cure(name: &str) -> String {
    let statistics = |of: &str| -> Vec<&'static str> {
        measures().filter_map(|known| known.strip_prefix(of)?.strip_prefix('.')).collect()
    };
    let (measure, _) = name.split_once('.').unwrap_or((name, ""));
    let own = statistics(measure);
    let mut near: Vec<(f64, &str)> =
        measures().map(|known| (strsim::normalized_damerau_levenshtein(known, name), known)).collect();
    // Names equally near stay in the order of the table.
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    if !own.is_empty() && own.len() <= SHOWN {
        let any = find(&format!("{measure}.p50"))
            .map_or("", |_| "; any percentile can be named, as p95 or p99.999");
        return format!("write {measure}. and one of {}{any}", own.join(", "));
    }
    if find(measure).is_some() {
        return format!("write {measure}, which has no statistics");
    }
    let near: Vec<&str> =
        near.iter().take(3).filter(|(alike, _)| *alike >= 0.5).map(|(_, known)| *known).collect();
    let mut families: Vec<&str> = measures().map(|known| known.split('.').next().unwrap_or(known)).collect();
    families.dedup();
    if near.is_empty() {
        return format!(
            "write one of {}, most with a statistic, for example latency.p99",
            families.join(", ")
        );
    }
    format!("did you mean {}? Measures are {}", near.join(" or "), families.join(", "))
}

/// Statistics that a message lists in full; pairs of points have more.
const SHOWN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_can_be_read_and_names_each_measure_once() {
        let names: BTreeSet<&str> = measures().collect();
        assert_eq!(names.len(), ALL.iter().filter(|one| !one.name.ends_with(ANY_PERCENTILE)).count());
        assert!(names.contains("latency.p99") && names.contains("lost"));
        for none in ["latency", "latency.p*", "p99", "latency.", ".p99", "loss.max", "", "-", "time"] {
            assert!(find(none).is_none(), "{none}");
        }
    }

    #[test]
    fn any_percentile_has_one_name() {
        for name in ["latency.p95", "rtt.p99.9999999", "latency_with_loss.p0.1", "latency.p1", "latency.p50"]
        {
            assert_eq!(find(name).map(|measure| measure.name), Some(name));
        }
        for none in [
            "latency.p100",
            "latency.p0",
            "latency.p0.0",
            "latency.p099",
            "latency.p99.90",
            "latency.p99.",
            "latency.p",
            "latency.p.5",
            "latency.p+5",
            "latency.p9e1",
            "latency.p99.99999999",
            "loss.p95",
            "reorder_extent.p95",
        ] {
            assert!(find(none).is_none(), "{none}");
        }
        assert!(find("pair_latency.tx_app-rx_app.p99.99").is_some() && find("pair_latency.p95").is_none());
        assert!(matches!(find("send_error.p95").map(|one| one.dimension), Some(Dimension::SignedTime)));
        assert!(matches!(find("rtt.p95").map(|one| one.needs), Some(Needs::Relay)));
    }

    #[test]
    fn messages_needed_follow_the_formula() {
        for (name, messages) in [
            ("p50", 5),
            ("p90", 29),
            ("p95", 59),
            ("p99", 299),
            ("p99.9", 2_995),
            ("p99.99", 29_956),
            ("p99.999", 299_572),
            ("p99.9999", 2_995_731),
            ("p1", 299),
        ] {
            assert_eq!(needed(&format!("latency.{name}")), Some(messages), "{name}");
        }
        assert_eq!(needed("latency.max"), None);
    }

    #[test]
    fn a_line_with_too_much_or_too_little_is_no_measure() {
        for line in [
            "",
            "lost",
            "lost count",
            "lost count -",
            "lost count - - -",
            "lost messages - -",
            "lost count flow -",
            "lost count - no",
        ] {
            assert!(read(line).is_none(), "{line}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_is_near() {
        let says = |name: &str, text: &str| assert!(cure(name).contains(text), "{name}: {}", cure(name));
        says("latency.p099", "latency. and one of min, mean, sd, mad, p50");
        says("latency.p100", "any percentile can be named");
        says("latency", "latency. and one of min");
        says("latncy.p99", "did you mean latency.p99");
        says("loss.max", "write loss, which has no statistics");
        says("availibility", "did you mean availability");
        says("pair_latency.tx_app-rx_ap.max", "did you mean pair_latency.tx_app-rx_app.max");
        says("qqqqqqqqqq", "write one of latency, ");
    }
}
