//! Reading the attributes of one element: each becomes a typed value that remembers where it was written, or a
//! diagnostic.
//!
//! A value that could not be read is `None` and was reported; later checks pass over it, so that one mistake
//! makes one message.

use std::collections::BTreeSet;
use std::rc::Rc;

use wg_frame::time::Span;

use crate::campaign::LAST_FLOW;
use crate::diagnostic::{Findings, Place};
use crate::quantity::{self, Kind, QuantityError};
use crate::tree::{Element, shown};

/// A value with its origin: its own attribute, or the sweep axis that replaced it.
#[derive(Clone, Debug)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) attribute: &'static str,
    pub(crate) written: Rc<str>,
    pub(crate) place: Place,
}

impl<T> Sourced<T> {
    /// `period "2ms"`, the beginning of every message about the value.
    pub(crate) fn named(&self) -> String {
        format!("{} \"{}\"", self.attribute, self.written)
    }
}

/// A value that may have failed to be read.
pub(crate) type Maybe<T> = Option<Sourced<T>>;

/// Reads the attributes of one element and reports what cannot be read.
pub(crate) struct Reader<'a> {
    pub(crate) element: &'a Element,
    pub(crate) place: Place,
    pub(crate) found: &'a mut Findings,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(element: &'a Element, found: &'a mut Findings) -> Self {
        Self { element, place: element.place(), found }
    }

    pub(crate) fn sourced<T>(&self, attribute: &'static str, written: &str, value: T) -> Sourced<T> {
        Sourced { value, attribute, written: shown(written).into(), place: self.place.clone() }
    }

    pub(crate) fn required(&mut self, attribute: &'static str) -> Option<&'a str> {
        let value = self.element.get(attribute);
        if value.is_none() {
            let cure = format!("add {attribute}=\"…\"");
            self.found.error(&self.place, format!("{attribute} is missing"), "", cure);
        }
        value
    }

    pub(crate) fn refuse(&mut self, attribute: &str, written: &str, problem: &str, limit: &str, cure: &str) {
        let message = format!("{attribute} \"{}\" {problem}", shown(written));
        self.found.error(&self.place, message, limit, cure);
    }

    pub(crate) fn quantity<T>(
        &mut self,
        attribute: &'static str,
        written: &str,
        kind: Kind,
        read: impl Fn(&str) -> Result<T, QuantityError>,
    ) -> Maybe<T> {
        match read(written) {
            Ok(value) => Some(self.sourced(attribute, written, value)),
            Err(error) => {
                self.refuse(attribute, written, &error.to_string(), "", &error.cure(kind, written));
                None
            }
        }
    }

    pub(crate) fn time(&mut self, attribute: &'static str) -> Option<Maybe<Span>> {
        let written = self.element.get(attribute)?;
        Some(self.quantity(attribute, written, Kind::Time, quantity::time))
    }

    pub(crate) fn time_or(&mut self, attribute: &'static str, default: &str) -> Maybe<Span> {
        let written = self.element.get(attribute).unwrap_or(default);
        self.quantity(attribute, written, Kind::Time, quantity::time)
    }

    /// An optional quantity; outer `None` where it is not written.
    pub(crate) fn optional<T>(
        &mut self,
        attribute: &'static str,
        kind: Kind,
        read: impl Fn(&str) -> Result<T, QuantityError>,
    ) -> Option<Maybe<T>> {
        let written = self.element.get(attribute)?;
        Some(self.quantity(attribute, written, kind, read))
    }

    /// A time within bounds; `None` where it could not be read or lies outside them.
    pub(crate) fn time_within(
        &mut self,
        attribute: &'static str,
        written: &str,
        (low, high, limit): (Span, Span, &str),
    ) -> Maybe<Span> {
        let time = self.quantity(attribute, written, Kind::Time, quantity::time)?;
        if (low..=high).contains(&time.value) {
            return Some(time);
        }
        self.refuse(attribute, written, "is out of range", limit, "write a time within the limit");
        None
    }

    /// A size within bounds.
    pub(crate) fn size_within(
        &mut self,
        attribute: &'static str,
        written: &str,
        (low, high, limit): (u64, u64, &str),
    ) -> Maybe<u64> {
        let size = self.quantity(attribute, written, Kind::Size, quantity::size)?;
        if (low..=high).contains(&size.value) {
            return Some(size);
        }
        self.refuse(attribute, written, "is out of range", limit, "write a size within the limit");
        None
    }

    /// An optional whole number.
    pub(crate) fn optional_whole<T: TryFrom<u64>>(
        &mut self,
        attribute: &'static str,
        low: u64,
        high: u64,
    ) -> Option<Maybe<T>> {
        let written = self.element.get(attribute)?;
        Some(self.whole(attribute, written, low, high))
    }

    /// An optional choice.
    pub(crate) fn optional_choice<T: Copy>(
        &mut self,
        attribute: &'static str,
        choices: &[(&str, T)],
    ) -> Option<Maybe<T>> {
        let written = self.element.get(attribute)?;
        Some(self.choice(attribute, written, choices))
    }

    /// Names with white space between, at least one, none of them twice.
    pub(crate) fn names(&mut self, attribute: &'static str) -> Option<Vec<Sourced<String>>> {
        let written = self.required(attribute)?;
        let mut names: Vec<Sourced<String>> = Vec::new();
        let mut known = BTreeSet::new();
        for word in written.split_whitespace() {
            let name = self.name_of(attribute, word)?;
            if !known.insert(word) {
                self.refuse(attribute, word, "is named twice", "", "name every end system once");
                return None;
            }
            names.push(name);
        }
        if names.is_empty() {
            self.refuse(attribute, written, "names nobody", "at least 1", "name an end system");
            return None;
        }
        Some(names)
    }

    pub(crate) fn payload(&mut self, written: Option<&str>) -> Maybe<u32> {
        let written = match written {
            Some(written) => written,
            None => self.required("payload")?,
        };
        self.quantity("payload", written, Kind::Size, payload)
    }

    pub(crate) fn whole<T: TryFrom<u64>>(
        &mut self,
        attribute: &'static str,
        written: &str,
        low: u64,
        high: u64,
    ) -> Maybe<T> {
        let limit = format!("{low} to {high}");
        let digits = !written.is_empty() && written.chars().all(|c| c.is_ascii_digit());
        if !digits {
            let cure = "write digits only, without sign, point or unit";
            self.refuse(attribute, written, "is not a whole number", &limit, cure);
            return None;
        }
        let value = written.parse::<u64>().ok().filter(|value| (low..=high).contains(value));
        match value.and_then(|value| T::try_from(value).ok()) {
            Some(value) => Some(self.sourced(attribute, written, value)),
            None => {
                let cure = "write a number within the limit";
                self.refuse(attribute, written, "is out of range", &limit, cure);
                None
            }
        }
    }

    pub(crate) fn flow_id(&mut self, attribute: &'static str) -> Maybe<u16> {
        let written = self.required(attribute)?;
        self.whole(attribute, written, 1, LAST_FLOW.into())
    }

    pub(crate) fn name(&mut self, attribute: &'static str) -> Maybe<String> {
        let written = self.required(attribute)?;
        self.name_of(attribute, written)
    }

    pub(crate) fn name_of(&mut self, attribute: &'static str, written: &str) -> Maybe<String> {
        if is_name(written) {
            return Some(self.sourced(attribute, written, written.to_owned()));
        }
        let limit = "1 to 15 of A-Z a-z 0-9 _ -, the first a letter";
        self.refuse(attribute, written, "is not a name", limit, "choose a name within the limit");
        None
    }

    pub(crate) fn choice<T: Copy>(
        &mut self,
        attribute: &'static str,
        written: &str,
        choices: &[(&str, T)],
    ) -> Maybe<T> {
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == written) {
            return Some(self.sourced(attribute, written, *value));
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let cure = format!("write {}", names.join(" or "));
        self.refuse(attribute, written, "is not one of the choices", "", &cure);
        None
    }

    pub(crate) fn flow_list(&mut self) -> Option<Maybe<Vec<u16>>> {
        let written = self.element.get("flow")?;
        let mut flows = Vec::new();
        for word in written.split_whitespace() {
            let Some(flow) = self.whole::<u16>("flow", word, 1, LAST_FLOW.into()) else { return Some(None) };
            flows.push(flow.value);
        }
        if flows.is_empty() {
            self.refuse("flow", written, "names no flow", "", "name flows or leave the attribute out");
            return Some(None);
        }
        Some(Some(self.sourced("flow", written, flows)))
    }
}

/// True for a name of a node: it becomes an interface and a host name, hence at most 15 characters.
pub(crate) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && text.len() <= 15
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// A payload in bytes.
pub(crate) fn payload(text: &str) -> Result<u32, QuantityError> {
    u32::try_from(quantity::size(text)?).ok().filter(|bytes| *bytes <= 1 << 24).ok_or(QuantityError::TooLarge)
}
