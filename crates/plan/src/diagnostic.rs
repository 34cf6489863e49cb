//! What is wrong with a test, said so that its author can mend it: where, what, which limit, which cure.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

/// One thing that is wrong with a test.
///
/// Rendered as `12: <send flow="10">: period "2" has no unit; write a number and one of …`; whoever knows the
/// file puts its name in front.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Line in the test file; 0 when the test was built in code.
    pub line: u32,
    /// The element as its author would recognise it, for example `<send flow="10">`.
    pub element: String,
    /// What is wrong, in one clause.
    pub message: String,
    /// The limit that was passed; empty where there is none.
    pub limit: String,
    /// What to change.
    pub cure: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}: ", self.line)?;
        }
        write!(f, "{}: {}", self.element, self.message)?;
        if !self.limit.is_empty() {
            write!(f, " (limit: {})", self.limit)?;
        }
        if !self.cure.is_empty() {
            write!(f, "; {}", self.cure)?;
        }
        Ok(())
    }
}

/// Why a test cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Refusal {
    /// What is wrong, in the order of the file.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// How many more there are that are not among them.
    pub(crate) beyond: usize,
}

/// Where a statement stands; shared, because every value of a sweep point carries one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) element: Rc<str>,
}

/// Everything found so far. Checks add to it and go on, so that one reading reports every mistake.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    by_order: Vec<Diagnostic>,
    /// Digests of those that are counted only: several checks may find the same.
    beyond: HashSet<u64>,
    warnings: Vec<String>,
}

/// More than this helps nobody and would let a large broken sweep produce a report of its own. The others are counted.
pub(crate) const MOST_DIAGNOSTICS: usize = 200;
/// Warnings repeat per sweep point; the first ones tell the story.
const MOST_WARNINGS: usize = 40;

impl Findings {
    /// Adds a diagnostic unless the very same one is known.
    pub(crate) fn error(
        &mut self,
        place: &Place,
        message: impl Into<String>,
        limit: impl Into<String>,
        cure: impl Into<String>,
    ) {
        let message = message.into();
        let known = self
            .by_order
            .iter()
            .any(|d| d.line == place.line && *d.element == *place.element && d.message == message);
        if known {
            return;
        }
        if self.by_order.len() >= MOST_DIAGNOSTICS {
            let mut digest = DefaultHasher::new();
            (place.line, &*place.element, &message).hash(&mut digest);
            self.beyond.insert(digest.finish());
            return;
        }
        self.by_order.push(Diagnostic {
            line: place.line,
            element: place.element.to_string(),
            message,
            limit: limit.into(),
            cure: cure.into(),
        });
    }

    /// Adds a warning, one sentence, unless it is known.
    pub(crate) fn warn(&mut self, sentence: String) {
        if self.warnings.len() < MOST_WARNINGS && !self.warnings.contains(&sentence) {
            self.warnings.push(sentence);
        }
    }

    /// Diagnostics so far.
    pub(crate) fn count(&self) -> usize {
        self.by_order.len()
    }

    /// True while nothing is wrong.
    pub(crate) fn clean(&self) -> bool {
        self.by_order.is_empty()
    }

    /// The warnings if nothing is wrong, else the first diagnostics that were found, in the order of the file.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, Refusal> {
        if self.by_order.is_empty() {
            return Ok(self.warnings);
        }
        self.by_order.sort_by_key(|d| d.line);
        Err(Refusal { diagnostics: self.by_order, beyond: self.beyond.len() })
    }
}

/// ` on line 7`, or nothing for a test built in code.
pub(crate) fn on_line(line: u32) -> String {
    if line == 0 { String::new() } else { format!(" on line {line}") }
}

/// A value fit for a message: at most 40 characters and no control characters.
pub(crate) fn shown(value: &str) -> String {
    let mut text: String = value.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if value.chars().nth(40).is_some() {
        text.push('…');
    }
    text
}
