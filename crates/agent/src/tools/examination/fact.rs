//! Facts about a host, including those that cannot be determined.

use serde::{Serialize, Serializer};

/// Value of a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Boolean value.
    Truth(bool),
    /// Number in the unit at the end of the fact's name.
    Number(i64),
    /// One word or line.
    Text(String),
    /// List of words or lines.
    Texts(Vec<String>),
}

/// Fact about the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Name of the fact.
    pub name: &'static str,
    /// Name of the interface; empty for the whole host.
    pub interface: String,
    /// Value, or the reason why it cannot be determined.
    pub seen: Result<Value, String>,
    /// Additional remark; usually empty.
    pub note: String,
}

impl Fact {
    pub(super) fn of<V: Into<Value>>(name: &'static str, seen: Result<V, String>) -> Self {
        Self { name, interface: String::new(), seen: seen.map(Into::into), note: String::new() }
    }

    pub(super) fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    pub(super) fn on(self, interface: &str) -> Self {
        Self { interface: interface.into(), ..self }
    }
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            name: &'a str,
            interface: &'a str,
            value: Option<&'a Value>,
            unreadable: &'a str,
            note: &'a str,
        }
        let (value, unreadable) = match &self.seen {
            Ok(value) => (Some(value), ""),
            Err(why) => (None, why.as_str()),
        };
        Shown { name: self.name, interface: &self.interface, value, unreadable, note: &self.note }
            .serialize(serializer)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Truth(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<Vec<String>> for Value {
    fn from(value: Vec<String>) -> Self {
        Self::Texts(value)
    }
}
