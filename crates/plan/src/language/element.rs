//! What a declaration of the language says of an element, and all of it as data for editors, builders and pages.

use serde::Serialize;

use super::attribute::{Declared, Need, Shape, Written, paragraph};

/// An element of the language.
pub(crate) struct Element {
    pub(crate) tag: &'static str,
    /// The attribute by which a message tells it from others of its kind.
    pub(crate) naming: Option<&'static str>,
    pub(crate) doc: &'static [&'static str],
    pub(crate) content: Content,
    /// Its own ones, and those of the element that it is like.
    pub(crate) attributes: &'static [&'static [&'static dyn Declared]],
}

impl Element {
    /// The naming attribute of a declaration that has one or none.
    pub(super) const fn named(attributes: &'static [&'static str]) -> Option<&'static str> {
        match attributes {
            [name] => Some(name),
            _ => None,
        }
    }
}

/// The elements in an element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// Those, in any order and any number; of some at least one.
    Any { of: &'static [&'static str], least: u32 },
    /// Those, in any order.
    All(&'static [Part]),
    /// Those, in this order.
    List(&'static [Part]),
}

/// An element in another, and how often it stands there.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Part {
    name: &'static str,
    least: u32,
    /// `None`: as often as wanted.
    most: Option<u32>,
}

pub(super) const fn nothing() -> Content {
    Content::List(&[])
}

pub(super) const fn any(of: &'static [&'static str]) -> Content {
    Content::Any { of, least: 0 }
}

pub(super) const fn some(of: &'static [&'static str]) -> Content {
    Content::Any { of, least: 1 }
}

pub(super) const fn all(parts: &'static [Part]) -> Content {
    Content::All(parts)
}

pub(super) const fn list(parts: &'static [Part]) -> Content {
    Content::List(parts)
}

pub(super) const fn once(name: &'static str) -> Part {
    Part { name, least: 1, most: Some(1) }
}

pub(super) const fn maybe(name: &'static str) -> Part {
    Part { name, least: 0, most: Some(1) }
}

pub(super) const fn many(name: &'static str) -> Part {
    Part { name, least: 0, most: None }
}

pub(super) const fn several(name: &'static str) -> Part {
    Part { name, least: 1, most: None }
}

/// The language as data.
#[derive(Serialize)]
pub(super) struct Language {
    elements: Vec<ElementData>,
    types: Vec<TypeData>,
}

#[derive(Serialize)]
struct ElementData {
    name: &'static str,
    named_by: Option<&'static str>,
    documentation: String,
    /// `any`, `all` or `list`.
    content: &'static str,
    /// Parts that are needed of `any`, whichever they are.
    least: u32,
    parts: Vec<Part>,
    attributes: Vec<AttributeData>,
}

#[derive(Serialize)]
struct AttributeData {
    name: &'static str,
    r#type: &'static str,
    required: bool,
    default: Option<&'static str>,
    documentation: String,
}

#[derive(Serialize)]
struct TypeData {
    name: &'static str,
    documentation: String,
    form: FormData,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum FormData {
    Whole([u64; 2]),
    Choices(Vec<(&'static str, String)>),
    Measures,
    Percentiles,
    Pattern(String),
    Text { empty: bool },
    Either(&'static [&'static str]),
    List { of: &'static str, empty: bool },
}

impl Language {
    pub(super) fn new<'a>(
        elements: impl Iterator<Item = &'a Element>,
        types: impl Iterator<Item = &'static dyn Written>,
    ) -> Self {
        let types = types.map(|form| TypeData {
            name: form.name(),
            documentation: form.documentation(),
            form: data(form),
        });
        Self { elements: elements.map(ElementData::new).collect(), types: types.collect() }
    }
}

impl ElementData {
    fn new(element: &Element) -> Self {
        let (content, least, parts) = match element.content {
            Content::Any { of, least } => ("any", least, of.iter().map(|tag| many(tag)).collect()),
            Content::All(parts) => ("all", 0, parts.to_vec()),
            Content::List(parts) => ("list", 0, parts.to_vec()),
        };
        let attributes = element.attributes.concat().into_iter().map(|attribute| AttributeData {
            name: attribute.name(),
            r#type: attribute.form(),
            required: attribute.need() == Need::Required,
            default: match attribute.need() {
                Need::Usual(default) => Some(default),
                _ => None,
            },
            documentation: attribute.documentation(),
        });
        Self {
            name: element.tag,
            named_by: element.naming,
            documentation: paragraph(element.doc),
            content,
            least,
            parts,
            attributes: attributes.collect(),
        }
    }
}

fn data(form: &dyn Written) -> FormData {
    match form.shape() {
        Shape::Quantity { kind, signed } => {
            let units: Vec<&str> = kind.table().iter().map(|(unit, _)| *unit).collect();
            let sign = if signed { "-?" } else { "" };
            FormData::Pattern(format!(r"{sign}[0-9]+(\.[0-9]+)?({})", units.join("|")))
        }
        Shape::Whole { low, high } => FormData::Whole([low, high]),
        Shape::Choices => FormData::Choices(form.words()),
        Shape::Measures => FormData::Measures,
        Shape::Percentiles => FormData::Percentiles,
        Shape::Pattern(parts) => FormData::Pattern(parts.concat()),
        Shape::Text { empty } => FormData::Text { empty },
        Shape::Either(of) => FormData::Either(of),
        Shape::List { of, empty } => FormData::List { of, empty },
    }
}
