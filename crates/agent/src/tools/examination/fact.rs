//! What is seen of a host, and what cannot be.

use serde::{Serialize, Serializer};

/// What a fact says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Truth(bool),
    /// In the unit that ends the fact's name.
    Number(i64),
    /// One word or line.
    Text(String),
    /// Several.
    Texts(Vec<String>),
}

/// One thing seen of the host, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What.
    pub name: &'static str,
    /// Of which interface; empty for the whole host.
    pub interface: String,
    /// What was seen, or why nothing can be.
    pub seen: Result<Value, String>,
    /// What belongs to it, in words; mostly nothing.
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
