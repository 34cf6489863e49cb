//! The test as it was written: elements, attributes and lines, no meaning.
//!
//! The tree comes from a file that the schema has accepted, or from the builder; but nothing here relies on
//! that. A tree that lacks an attribute is answered with a [`Diagnostic`](crate::Diagnostic), never a panic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Place, shown};
use crate::language::naming_attribute;

/// An element of a test file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Element {
    /// Local name.
    pub tag: String,
    /// Line of its start tag; 0 when built in code.
    #[serde(default)]
    pub line: u32,
    /// Attributes by name.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// Child elements in the order of the file.
    #[serde(default)]
    pub children: Vec<Element>,
}

impl Element {
    /// An attribute as written.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }

    /// Children with this tag.
    pub(crate) fn all<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.tag == tag)
    }

    /// Where it stands.
    pub(crate) fn place(&self) -> Place {
        let name = naming_attribute(&self.tag).and_then(|name| Some((name, self.get(name)?)));
        let element = match name {
            Some((name, value)) => format!("<{} {name}=\"{}\">", self.tag, shown(value)),
            None => format!("<{}>", self.tag),
        };
        Place { line: self.line, element: element.into() }
    }
}
