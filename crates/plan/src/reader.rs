//! Reading the attributes of one element: each becomes a typed value that remembers where it was written, or a
//! diagnostic.
//!
//! A value that could not be read is `None` and was reported; later checks pass over it, so that one mistake
//! makes one message.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::diagnostic::{Findings, Place, shown};
use crate::language::attribute::{Attribute, Need, Refused, Text, whole};
use crate::language::values::name_of;
use crate::tree::Element;

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

    /// Whether an attribute is written.
    pub(crate) fn has<T>(&self, attribute: &Attribute<T>) -> bool {
        self.text(attribute).is_some()
    }

    /// An attribute as it is written.
    pub(crate) fn text<T>(&self, attribute: &Attribute<T>) -> Option<&'a str> {
        self.element.get(attribute.name)
    }

    /// An attribute as it is written, or what counts where it is not; one that has to be written is reported.
    pub(crate) fn written<T>(&mut self, attribute: &Attribute<T>) -> Option<&'a str> {
        let written = self.text(attribute).or(attribute.default());
        if written.is_none() && attribute.need == Need::Required {
            self.missing(attribute.name);
        }
        written
    }

    /// Reports that an attribute is missing.
    pub(crate) fn missing(&mut self, attribute: &str) {
        let cure = format!("add {attribute}=\"…\"");
        self.found.error(&self.place, format!("{attribute} is missing"), "", cure);
    }

    pub(crate) fn refuse(&mut self, attribute: &str, written: &str, problem: &str, limit: &str, cure: &str) {
        let message = format!("{attribute} \"{}\" {problem}", shown(written));
        self.found.error(&self.place, message, limit, cure);
    }

    fn refused(&mut self, attribute: &str, refused: &Refused) {
        let Refused { word, problem, limit, cure } = refused;
        self.refuse(attribute, word, problem, limit, cure);
    }

    /// The value of an attribute, or of what counts where it is not written; `None` also where nothing does.
    pub(crate) fn read<T>(&mut self, attribute: &Attribute<T>) -> Maybe<T> {
        let written = self.written(attribute)?;
        self.read_as(attribute, written)
    }

    /// As [`read`](Self::read), without its origin.
    pub(crate) fn value<T>(&mut self, attribute: &Attribute<T>) -> Option<T> {
        Some(self.read(attribute)?.value)
    }

    /// The value of an attribute; outer `None` where it is not written.
    pub(crate) fn optional<T>(&mut self, attribute: &Attribute<T>) -> Option<Maybe<T>> {
        let written = self.text(attribute)?;
        Some(self.read_as(attribute, written))
    }

    /// The value that an attribute would have if it was written so.
    pub(crate) fn read_as<T>(&mut self, attribute: &Attribute<T>, written: &str) -> Maybe<T> {
        match attribute.parse(written) {
            Ok(value) => Some(self.sourced(attribute.name, written, value)),
            Err(refused) => {
                self.refused(attribute.name, &refused);
                None
            }
        }
    }

    /// Names with white space between, at least one, none of them twice; `None` also where nothing is written.
    pub(crate) fn names(&mut self, attribute: &Attribute<Text>) -> Option<Vec<Sourced<String>>> {
        let written = self.written(attribute)?;
        let mut names: Vec<Sourced<String>> = Vec::new();
        let mut known = BTreeSet::new();
        for word in written.split_whitespace() {
            let name = self.name_of(attribute.name, word)?;
            if !known.insert(word) {
                self.refuse(attribute.name, word, "is named twice", "", "name every end system once");
                return None;
            }
            names.push(name);
        }
        if names.is_empty() {
            self.refuse(attribute.name, written, "names nobody", "at least 1", "name an end system");
            return None;
        }
        Some(names)
    }

    /// A word of an attribute that is a name.
    pub(crate) fn name_of(&mut self, attribute: &'static str, word: &str) -> Maybe<String> {
        match name_of(word) {
            Ok(name) => Some(self.sourced(attribute, word, name)),
            Err(refused) => {
                self.refused(attribute, &refused);
                None
            }
        }
    }

    /// A word of an attribute that is a whole number.
    pub(crate) fn whole<T: TryFrom<u64>>(
        &mut self,
        attribute: &'static str,
        word: &str,
        (low, high): (u64, u64),
    ) -> Option<T> {
        let limit = format!("{low} to {high}");
        match whole(word, low.into(), high.into(), &limit) {
            Ok(number) => T::try_from(number).ok(),
            Err(refused) => {
                self.refused(attribute, &refused);
                None
            }
        }
    }
}
