//! What a declaration of the language says: the form of a value, and an attribute with its default and its range.
//!
//! Declarations are constants. A range is written once, as messages and documentation show it, and is read by the
//! compiler: a range with a unit that its form does not have is no program.

use wg_frame::time::Span;

use crate::campaign::PtpProfile;
use crate::quantity::{Kind, QuantityError};

/// Why a text is no value of an attribute; `ATTRIBUTE "WORD" PROBLEM`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The part of the text that is refused.
    pub(crate) word: String,
    pub(crate) problem: String,
    /// What was passed; empty where there is none.
    pub(crate) limit: String,
    pub(crate) cure: String,
}

impl Refused {
    pub(crate) fn new(word: &str, problem: &str, limit: &str, cure: &str) -> Self {
        let [word, problem, limit, cure] = [word, problem, limit, cure].map(ToOwned::to_owned);
        Self { word, problem, limit, cure }
    }

    /// Text that is no quantity of this kind.
    pub(crate) fn quantity(word: &str, kind: Kind, error: &QuantityError) -> Self {
        Self::new(word, &error.to_string(), "", &error.cure(kind, word))
    }
}

/// The form of values: what an editor is told of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// A number with a unit; with a sign where it may be negative.
    Quantity { kind: Kind, signed: bool },
    /// A whole number.
    Whole { low: u64, high: u64 },
    /// One of some words.
    Choices,
    /// One of the names that a limit can have, which are those of the measures.
    Measures,
    /// One name of any percentile.
    Percentiles,
    /// Text of this pattern, in parts, as XML Schema writes patterns.
    Pattern(&'static [&'static str]),
    /// Any text, where not empty text is asked for of at least one character.
    Text { empty: bool },
    /// One of other forms.
    Either(&'static [&'static str]),
    /// Values of another form, with spaces between.
    List { of: &'static str, empty: bool },
}

/// A word that stands for a value.
#[derive(Debug)]
pub(crate) struct Choice<T: 'static> {
    pub(crate) name: &'static str,
    pub(crate) value: T,
    pub(crate) doc: &'static [&'static str],
}

/// How text becomes a value.
enum Reading<T: 'static> {
    /// A number with a unit, and its size in the base unit.
    Quantity(fn(&str) -> Result<T, QuantityError>, fn(&T) -> i128),
    Whole(fn(u64) -> Option<T>),
    Choices(&'static [Choice<T>], fn(&T) -> T),
    By(fn(&Attribute<T>, &str) -> Result<T, Refused>),
}

/// A form of values with what they become.
pub(crate) struct Form<T: 'static> {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) shape: Shape,
    reading: Reading<T>,
}

/// Text that is read where its meaning is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text;

/// A value with a size in the base unit of its kind.
pub(crate) trait Sized128 {
    fn size(&self) -> i128;
}

impl Sized128 for Span {
    fn size(&self) -> i128 {
        self.as_picos().into()
    }
}

macro_rules! sized {
    ($($number:ty),*) => {
        $(impl Sized128 for $number {
            fn size(&self) -> i128 {
                (*self).into()
            }
        })*
    };
}

sized!(u16, u32, u64, i64);

type Doc = &'static [&'static str];

impl<T: Sized128> Form<T> {
    pub(crate) const fn quantity(
        name: &'static str,
        doc: Doc,
        kind: Kind,
        read: fn(&str) -> Result<T, QuantityError>,
    ) -> Self {
        let shape = Shape::Quantity { kind, signed: false };
        Self { name, doc, shape, reading: Reading::Quantity(read, T::size) }
    }

    /// A quantity that may be negative.
    pub(crate) const fn signed(
        name: &'static str,
        doc: Doc,
        kind: Kind,
        read: fn(&str) -> Result<T, QuantityError>,
    ) -> Self {
        let shape = Shape::Quantity { kind, signed: true };
        Self { name, doc, shape, reading: Reading::Quantity(read, T::size) }
    }
}

impl<T: TryFrom<u64>> Form<T> {
    pub(crate) const fn whole(name: &'static str, doc: Doc, low: u64, high: u64) -> Self {
        let reading = Reading::Whole(|number| T::try_from(number).ok());
        Self { name, doc, shape: Shape::Whole { low, high }, reading }
    }
}

impl<T: Clone> Form<T> {
    pub(crate) const fn choice(name: &'static str, doc: Doc, choices: &'static [Choice<T>]) -> Self {
        Self { name, doc, shape: Shape::Choices, reading: Reading::Choices(choices, T::clone) }
    }
}

impl Form<Text> {
    pub(crate) const fn text(name: &'static str, doc: Doc, shape: Shape) -> Self {
        Self { name, doc, shape, reading: Reading::By(|_, _| Ok(Text)) }
    }
}

impl<T> Form<T> {
    pub(crate) const fn by(
        name: &'static str,
        doc: Doc,
        shape: Shape,
        read: fn(&Attribute<T>, &str) -> Result<T, Refused>,
    ) -> Self {
        Self { name, doc, shape, reading: Reading::By(read) }
    }

    /// The same form where a value becomes something else.
    pub(crate) const fn read_by<U>(&self, read: fn(&Attribute<U>, &str) -> Result<U, Refused>) -> Form<U> {
        Form { name: self.name, doc: self.doc, shape: self.shape, reading: Reading::By(read) }
    }

    /// The same quantity in another type.
    pub(crate) const fn sized<U: Sized128>(&self, read: fn(&str) -> Result<U, QuantityError>) -> Form<U> {
        let reading = Reading::Quantity(read, U::size);
        Form { name: self.name, doc: self.doc, shape: self.shape, reading }
    }

    /// The words that it can be; none of a form that has no choices.
    pub(crate) const fn choices(&self) -> &'static [Choice<T>] {
        match self.reading {
            Reading::Choices(choices, _) => choices,
            _ => &[],
        }
    }

    /// The value of a word.
    pub(crate) fn chosen(&self, word: &str) -> Result<T, Refused> {
        let Reading::Choices(choices, clone) = self.reading else {
            return Err(Refused::new(word, "is not one of the choices", "", ""));
        };
        if let Some(choice) = choices.iter().find(|choice| choice.name == word) {
            return Ok(clone(&choice.value));
        }
        let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
        let cure = format!("write {}", names.join(" or "));
        Err(Refused::new(word, "is not one of the choices", "", &cure))
    }
}

/// Whether an attribute has to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
    /// This counts where it is not written.
    Usual(&'static str),
}

/// Least and largest size, in the base unit, and how both are written.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: i128,
    high: i128,
    limit: &'static str,
}

/// An attribute of an element.
pub(crate) struct Attribute<T: 'static> {
    pub(crate) name: &'static str,
    pub(crate) doc: Doc,
    pub(crate) form: &'static Form<T>,
    pub(crate) need: Need,
    /// What counts where neither it nor what excludes it is written.
    otherwise: &'static str,
    /// The same under the profile gPTP.
    in_gptp: &'static str,
    range: Option<Range>,
    problem: &'static str,
    pub(super) cure: &'static str,
}

impl<T> Clone for Attribute<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Attribute<T> {}

const fn attribute<T>(name: &'static str, form: &'static Form<T>, need: Need) -> Attribute<T> {
    let (problem, cure) = ("is out of range", "");
    Attribute { name, doc: &[], form, need, otherwise: "", in_gptp: "", range: None, problem, cure }
}

/// An attribute that has to be written.
pub(crate) const fn required<T>(name: &'static str, form: &'static Form<T>) -> Attribute<T> {
    attribute(name, form, Need::Required)
}

/// An attribute that may be left out.
pub(crate) const fn optional<T>(name: &'static str, form: &'static Form<T>) -> Attribute<T> {
    attribute(name, form, Need::Optional)
}

/// An attribute that has a value where it is left out.
pub(crate) const fn usual<T>(
    name: &'static str,
    form: &'static Form<T>,
    default: &'static str,
) -> Attribute<T> {
    attribute(name, form, Need::Usual(default))
}

impl<T> Attribute<T> {
    /// With what it means; nothing of an attribute that is declared elsewhere.
    pub(crate) const fn documented(self, doc: Doc) -> Self {
        if doc.is_empty() { self } else { Self { doc, ..self } }
    }

    /// Within a range, written as messages show it: `5B to 12B`, `more than 0s, at most 1s`, `1000ppm either way`; one
    /// value is the largest.
    pub(crate) const fn within(self, limit: &'static str) -> Self {
        let units = match self.form.shape {
            Shape::Quantity { kind, .. } => kind.table(),
            Shape::Whole { .. } => WITHOUT_UNIT,
            // A distribution.
            _ => Kind::Time.table(),
        };
        let (low, high) = bounds(units, limit.as_bytes());
        Self { range: Some(Range { low, high, limit }), ..self }
    }

    /// Within a range that is said in other words.
    pub(crate) const fn within_as(self, range: &'static str, limit: &'static str) -> Self {
        let inner = self.within(range);
        match inner.range {
            Some(range) => Self { range: Some(Range { limit, ..range }), ..inner },
            None => inner,
        }
    }

    /// What is wrong with a value beyond the range, if it is not just that.
    pub(crate) const fn problem(self, problem: &'static str) -> Self {
        Self { problem, ..self }
    }

    /// What to write in place of a value beyond the range.
    pub(crate) const fn cure(self, cure: &'static str) -> Self {
        Self { cure, ..self }
    }

    /// What counts where neither it nor what excludes it is written.
    pub(crate) const fn otherwise(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    /// What counts in place of that under the profile gPTP.
    pub(crate) const fn in_gptp(self, in_gptp: &'static str) -> Self {
        Self { in_gptp, ..self }
    }

    /// What counts under a profile where it is not written.
    pub(crate) fn usual_in(&self, profile: PtpProfile) -> Option<&'static str> {
        let is_other = profile == PtpProfile::Gptp && !self.in_gptp.is_empty();
        if is_other { Some(self.in_gptp) } else { self.default() }
    }

    /// Its usual value, or what counts where neither it nor what excludes it is written.
    pub(crate) const fn default(&self) -> Option<&'static str> {
        match self.need {
            Need::Usual(default) => Some(default),
            _ if self.otherwise.is_empty() => None,
            _ => Some(self.otherwise),
        }
    }

    /// The value of [`default`](Self::default). For attributes that are declared with one.
    pub(crate) fn usual(&self) -> T {
        self.value_of(self.default())
    }

    /// The value that counts under a profile where it is not written. For attributes that are declared with one.
    pub(crate) fn usual_value_in(&self, profile: PtpProfile) -> T {
        self.value_of(self.usual_in(profile))
    }

    fn value_of(&self, default: Option<&str>) -> T {
        default.and_then(|text| self.parse(text).ok()).expect("declared with a default, which is a value")
    }

    /// The value of a text.
    pub(crate) fn parse(&self, text: &str) -> Result<T, Refused> {
        match &self.form.reading {
            Reading::Quantity(read, size) => {
                let Shape::Quantity { kind, .. } = self.form.shape else {
                    return Err(Refused::new(text, self.problem, "", self.cure));
                };
                let value = read(text).map_err(|error| Refused::quantity(text, kind, &error))?;
                self.in_range(text, kind, size(&value)).map(|()| value)
            }
            Reading::Whole(make) => self.whole(text).and_then(|number| {
                make(number).ok_or_else(|| Refused::new(text, self.problem, &self.limit(), WITHIN))
            }),
            Reading::Choices(..) => self.form.chosen(text),
            Reading::By(read) => read(self, text),
        }
    }

    /// Whether the size of a quantity lies in the range.
    pub(crate) fn in_range(&self, text: &str, kind: Kind, size: i128) -> Result<(), Refused> {
        let Some(range) = self.range.filter(|range| !(range.low..=range.high).contains(&size)) else {
            return Ok(());
        };
        let cure = match kind {
            _ if !self.cure.is_empty() => self.cure,
            Kind::Time => "write a time within the limit",
            Kind::Size => "write a size within the limit",
            _ => "write a value within the limit",
        };
        Err(Refused::new(text, self.problem, range.limit, cure))
    }

    fn whole(&self, text: &str) -> Result<u64, Refused> {
        let (low, high) = match (self.range, self.form.shape) {
            (Some(range), _) => (range.low, range.high),
            (None, Shape::Whole { low, high }) => (low.into(), high.into()),
            _ => (0, u64::MAX.into()),
        };
        whole(text, low, high, &self.limit()).map_err(|refused| match self.cure {
            cure if !cure.is_empty() && refused.cure == WITHIN => {
                Refused { problem: self.problem.to_owned(), cure: cure.to_owned(), ..refused }
            }
            _ => refused,
        })
    }

    /// Its range as text; empty where it has none.
    pub(crate) fn limit(&self) -> String {
        match (self.range, self.form.shape) {
            (Some(range), _) => range.limit.to_owned(),
            (None, Shape::Whole { low, high }) => format!("{low} to {high}"),
            _ => String::new(),
        }
    }
}

const WITHIN: &str = "write a number within the limit";

/// A whole number between two others.
pub(crate) fn whole(text: &str, low: i128, high: i128, limit: &str) -> Result<u64, Refused> {
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_digit()) {
        let cure = "write digits only, without sign, point or unit";
        return Err(Refused::new(text, "is not a whole number", limit, cure));
    }
    let number = text.parse::<u64>().ok().filter(|number| (low..=high).contains(&i128::from(*number)));
    number.ok_or_else(|| Refused::new(text, "is out of range", limit, WITHIN))
}

/// What one attribute has to say without its type.
pub(crate) trait Declared: Sync {
    fn name(&self) -> &'static str;
    fn need(&self) -> Need;
    fn form(&self) -> &'static str;
    /// What it means, with its range and its default.
    fn documentation(&self) -> String;
    /// Whether every default is a value.
    #[cfg(test)]
    fn has_values_as_defaults(&self) -> bool;
}

impl<T: Sync> Declared for Attribute<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn need(&self) -> Need {
        self.need
    }

    fn form(&self) -> &'static str {
        self.form.name
    }

    fn documentation(&self) -> String {
        let text = paragraph(self.doc).replace("{limit}", &self.limit());
        text.replace("{default}", self.otherwise).replace("{in_gptp}", self.in_gptp)
    }

    #[cfg(test)]
    fn has_values_as_defaults(&self) -> bool {
        let profiles = [PtpProfile::Default, PtpProfile::Gptp];
        profiles.iter().filter_map(|profile| self.usual_in(*profile)).all(|text| self.parse(text).is_ok())
    }
}

/// What one form has to say without its type.
pub(crate) trait Written: Sync {
    fn name(&self) -> &'static str;
    fn shape(&self) -> Shape;
    fn documentation(&self) -> String;
    /// Words with what they mean.
    fn words(&self) -> Vec<(&'static str, String)>;
}

impl<T: Sync> Written for Form<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn documentation(&self) -> String {
        let limit = match self.shape {
            Shape::Whole { low, high } => format!("{low} to {high}"),
            _ => String::new(),
        };
        paragraph(self.doc).replace("{limit}", &limit)
    }

    fn words(&self) -> Vec<(&'static str, String)> {
        self.choices().iter().map(|choice| (choice.name, paragraph(choice.doc))).collect()
    }
}

/// The lines of a comment as one.
pub(crate) fn paragraph(doc: &[&str]) -> String {
    let lines: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

const WITHOUT_UNIT: &[(&str, u128)] = &[("", 1)];
const MORE_THAN: &[u8] = b"more than ";
const AT_MOST: &[u8] = b", at most ";
const EITHER_WAY: &[u8] = b" either way";
const TO: &[u8] = b" to ";

/// Least and largest size of a range as it is written.
const fn bounds(units: &[(&str, u128)], text: &[u8]) -> (i128, i128) {
    let is_open = begins(text, 0, MORE_THAN);
    let (first, end) = number(units, text, if is_open { MORE_THAN.len() } else { 0 });
    let (between, after) = if is_open { (AT_MOST, first + 1) } else { (TO, first) };
    if begins(text, end, between) {
        let (second, end) = number(units, text, end + between.len());
        assert!(end == text.len() && after <= second, "a range ends with its largest value");
        return (after, second);
    }
    if begins(text, end, EITHER_WAY) {
        return (-first, first);
    }
    assert!(
        end == text.len(),
        "a range is \"A to B\", \"more than A, at most B\", \"A either way\" or \"B\""
    );
    if is_open { (after, i128::MAX) } else { (0, first) }
}

const fn begins(text: &[u8], at: usize, with: &[u8]) -> bool {
    let mut index = 0;
    while index < with.len() {
        if at + index >= text.len() || text[at + index] != with[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// The size of the quantity that begins at `at`, and where it ends.
const fn number(units: &[(&str, u128)], text: &[u8], at: usize) -> (i128, usize) {
    let (mut digits, mut scale, mut index, mut is_fraction) = (0_u128, 1_u128, at, false);
    while index < text.len() && (text[index].is_ascii_digit() || text[index] == b'.') {
        if text[index] == b'.' {
            is_fraction = true;
        } else {
            digits = digits * 10 + (text[index] - b'0') as u128;
            scale *= if is_fraction { 10 } else { 1 };
        }
        index += 1;
    }
    assert!(index > at, "a range has numbers");
    let mut end = index;
    while end < text.len() && text[end] != b' ' && text[end] != b',' {
        end += 1;
    }
    let mut unit = 0;
    while unit < units.len() {
        let (name, size) = units[unit];
        if name.len() == end - index && begins(text, index, name.as_bytes()) {
            assert!((digits * size).is_multiple_of(scale), "a range is a whole number of the base unit");
            #[expect(clippy::cast_possible_wrap, reason = "ranges are far from it")]
            return ((digits * size / scale) as i128, end);
        }
        unit += 1;
    }
    panic!("a range has units of its form");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_what_they_say() {
        let time = Kind::Time.table();
        assert_eq!(bounds(time, b"0s to 10s"), (0, 10_000_000_000_000));
        assert_eq!(bounds(time, b"more than 0s, at most 1us"), (1, 1_000_000));
        assert_eq!(bounds(time, b"more than 0s"), (1, i128::MAX));
        assert_eq!(bounds(time, b"7.8125ms to 16s"), (7_812_500_000, 16_000_000_000_000));
        assert_eq!(bounds(Kind::Size.table(), b"5B to 16MiB"), (5, 1 << 24));
        assert_eq!(bounds(Kind::Drift.table(), b"1000ppm either way"), (-1_000_000, 1_000_000));
        assert_eq!(bounds(Kind::Drift.table(), b"1000ppm"), (0, 1_000_000));
        assert_eq!(bounds(WITHOUT_UNIT, b"1 to 10000"), (1, 10_000));
    }

    #[test]
    #[should_panic(expected = "units of its form")]
    fn a_range_of_another_kind_is_none() {
        bounds(Kind::Time.table(), b"5B to 12B");
    }
}
