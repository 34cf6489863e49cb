//! The test language, declared once: each element with its attributes, and each form of value.
//!
//! From here come what readers of statements know of an attribute (its default, its range, its words, what a message says
//! of them) and, as data, the schema for editors, the builder for Python and the page of the reference
//! (`tools/language.py`). A comment in a declaration is what an editor shows; `{limit}` in it is the range, `{default}`
//! what counts where nothing else is said.

/// Declares forms of values: a constant each, and all of them in the order in which they are shown.
macro_rules! forms {
    ($(
        $(#[doc = $doc:literal])*
        $form:ident $name:literal: $value:ty = $how:ident($($with:tt)*)
        $({ $($(#[doc = $meaning:literal])* $word:literal => $stands:expr,)* })?;
    )*) => {
        $(pub(crate) static $form: Form<$value> = Form::<$value>::$how(
            $name,
            &[$($doc),*],
            $($with)*
            $(&[$(Choice { name: $word, value: $stands, doc: &[$($meaning),*] }),*])?
        );)*
        /// The forms of this file.
        pub(super) static FORMS: &[&dyn Written] = &[$(&$form),*];
    };
}

/// Declares elements: a module each, with a constant for each attribute, and all of them in the order in which they are
/// shown. `named` is the attribute by which a message tells an element from others of its kind; `like` gives it all attributes of another
/// element behind its own.
macro_rules! elements {
    ($(
        $(#[doc = $doc:literal])*
        $element:ident $tag:literal $(named $naming:ident)? $(like $other:ident)? holds $content:ident($($parts:tt)*) {
            $($(#[doc = $meaning:literal])* $attribute:ident: $value:ty = $declared:expr;)*
        }
    )*) => {
        $(pub(crate) mod $element {
            #[allow(unused_imports, reason = "some elements have no attribute")]
            use super::*;
            $(
                #[allow(unused_imports, reason = "few readers name an attribute by each element that has it")]
                pub(crate) use super::$other::*;
            )?

            $(pub(crate) const $attribute: Attribute<$value> = $declared.documented(&[$($meaning),*]);)*
            /// The attributes that are declared here, in the order in which they are shown.
            pub(super) const OWN: &[&dyn Declared] = &[$(&$attribute),*];
        })*
        /// The elements of this file.
        pub(super) static ELEMENTS: &[Element] = &[$(Element {
            tag: $tag,
            naming: Element::named(&[$($element::$naming.name)?]),
            doc: &[$($doc),*],
            content: $content($($parts)*),
            attributes: &[$element::OWN, $($other::OWN)?],
        }),*];
    };
}

pub(crate) mod attribute;
mod element;
pub(crate) mod faults;
pub(crate) mod flows;
pub(crate) mod hosts;
pub(crate) mod judging;
pub(crate) mod network;
pub(crate) mod nodes;
pub(crate) mod switches;
pub(crate) mod synchronise;
pub(crate) mod tasks;
pub(crate) mod tsn;
pub(crate) mod types;
pub(crate) mod values;

use element::{Element, Language};

/// Every element, in the order in which they are shown.
fn elements() -> impl Iterator<Item = &'static Element> {
    let files = [
        network::ELEMENTS,
        tsn::ELEMENTS,
        nodes::ELEMENTS,
        hosts::ELEMENTS,
        switches::ELEMENTS,
        synchronise::ELEMENTS,
        flows::ELEMENTS,
        tasks::ELEMENTS,
        faults::ELEMENTS,
        judging::ELEMENTS,
    ];
    files.into_iter().flatten()
}

/// The attribute by which a message tells an element from others of its kind: `name` of `<switch>`.
pub(crate) fn naming_attribute(tag: &str) -> Option<&'static str> {
    elements().find(|element| element.tag == tag)?.naming
}

/// The whole language as JSON: elements with their attributes, and the forms of values.
pub fn language() -> String {
    let language = Language::new(elements(), types::forms());
    serde_json::to_string(&language).expect("names and texts are JSON")
}

#[cfg(test)]
mod tests {
    use super::elements;

    #[test]
    fn defaults_are_values() {
        for element in elements() {
            for attribute in element.attributes.concat() {
                assert!(attribute.has_values_as_defaults(), "{} of <{}>", attribute.name(), element.tag);
            }
        }
    }
}
