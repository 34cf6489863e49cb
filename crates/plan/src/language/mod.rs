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
        /// Every form of the language.
        pub(super) static FORMS: &[&dyn Written] = &[$(&$form),*];
    };
}

/// Declares elements: a module each, with a constant for each attribute, and all of them in the order in which they are
/// shown.
macro_rules! elements {
    ($(
        $(#[doc = $doc:literal])*
        $element:ident $tag:literal holds $content:ident($($parts:tt)*) {
            $($(#[doc = $meaning:literal])* $attribute:ident: $value:ty = $declared:expr;)*
        }
    )*) => {
        $(pub(crate) mod $element {
            #[allow(unused_imports, reason = "some elements have no attribute")]
            use super::*;

            $(pub(crate) const $attribute: Attribute<$value> = $declared.documented(&[$($meaning),*]);)*
        })*
        /// The elements of this file.
        pub(super) static ELEMENTS: &[Element] = &[$(Element {
            tag: $tag,
            doc: &[$($doc),*],
            content: $content($($parts)*),
            attributes: &[$(&$element::$attribute),*],
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

/// The whole language as JSON: elements with their attributes, and the forms of values.
pub fn language() -> String {
    let language = Language::new(elements(), types::FORMS);
    serde_json::to_string(&language).expect("names and texts are JSON")
}
