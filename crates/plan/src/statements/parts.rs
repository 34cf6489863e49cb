//! What several elements of a test share: ends, parts that stand once, limits.

use crate::diagnostic::Findings;
use crate::places::{LAST_FLOW, MOST_PORTS};
use crate::reader::Reader;
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) node: String,
    pub(crate) port: Option<u16>,
}

/// The child with this tag; a second one is refused.
pub(crate) fn only<'e>(element: &'e Element, tag: &'e str, found: &mut Findings) -> Option<&'e Element> {
    single(element, tag, "keep one of them", found)
}

/// As [`only`], where two are mended otherwise.
pub(super) fn single<'e>(
    element: &'e Element,
    tag: &'e str,
    cure: &str,
    found: &mut Findings,
) -> Option<&'e Element> {
    let mut all = element.all(tag);
    let first = all.next();
    if let Some(second) = all.next() {
        found.error(&second.place(), format!("<{tag}> stands here a second time"), "1", cure);
    }
    first
}

/// Two ends of a link.
pub(crate) fn link_ends(reader: &mut Reader<'_>, attribute: &'static str, written: &str) -> Option<[End; 2]> {
    let words: Vec<&str> = written.split_whitespace().collect();
    let [a, b] = words[..] else {
        let problem = format!("names {} ends", words.len());
        let cure = "write two names, for example \"mac sw1\" or \"mac sw1:3\"";
        reader.refuse(attribute, written, &problem, "2", cure);
        return None;
    };
    let (a, b) = (end(reader, attribute, a), end(reader, attribute, b));
    Some([a?, b?])
}

/// A node, with its port where one is written.
pub(crate) fn end(reader: &mut Reader<'_>, attribute: &'static str, word: &str) -> Option<End> {
    let (name, port) = match word.split_once(':') {
        Some((name, port)) => (name, Some(reader.whole("port", port, (1, u64::from(MOST_PORTS)))?)),
        None => (word, None),
    };
    reader.name_of(attribute, name).map(|name| End { node: name.value, port })
}

/// Links, flows, tasks of one kind, faults, or limits of a test: as many as there are numbers of flows.
pub(crate) const MOST_OF_A_KIND: usize = LAST_FLOW as usize;
