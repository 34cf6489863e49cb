//! A first-in first-out list that seldom holds more than one thing.
//!
//! Frames on a link, messages in hand of a thread, effects to be taken: nearly always one or none. The first lies in
//! the owner's own memory, so that passing one through touches no other; what follows goes to a list elsewhere, which is
//! made when it is first needed and kept.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// The list. What is behind the first is only there while the first is.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    first: Option<T>,
    /// How many are in `rest`: to know that there are none, nobody looks into it.
    behind: u32,
    rest: Option<Box<Rest<T>>>,
}

/// What is behind the first.
#[derive(Clone, Debug)]
struct Rest<T> {
    /// None of them is empty.
    items: VecDeque<Option<T>>,
}

impl<T> Default for Rest<T> {
    fn default() -> Self {
        Self { items: VecDeque::new() }
    }
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Fifo<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self { first: None, behind: 0, rest: None }
    }

    /// How many it holds.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.behind as usize
    }

    /// Whether it holds nothing.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The oldest.
    #[inline]
    pub const fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The youngest.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        self.rest.as_ref().and_then(|rest| rest.items.back()?.as_ref()).or(self.first.as_ref())
    }

    /// Puts `item` behind all others.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        // The place is found first, so that the item is put together there.
        let place = if self.first.is_none() { &mut self.first } else { self.place_behind() };
        *place = Some(item);
    }

    /// An empty place behind all others.
    #[cold]
    fn place_behind(&mut self) -> &mut Option<T> {
        self.behind += 1;
        let items = &mut self.rest.get_or_insert_default().items;
        items.push_back(None);
        let last = items.len() - 1;
        &mut items[last]
    }

    /// Puts `item` before all others.
    pub fn push_front(&mut self, item: T) {
        if let Some(second) = self.first.replace(item) {
            self.rest.get_or_insert_default().items.push_front(Some(second));
            self.behind += 1;
        }
    }

    /// Takes the oldest.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.first.take();
        if self.behind > 0 {
            self.move_up();
        }
        first
    }

    #[cold]
    fn move_up(&mut self) {
        self.first = self.rest.as_mut().and_then(|rest| rest.items.pop_front()?);
        self.behind -= u32::from(self.first.is_some());
    }

    /// Takes the youngest.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        let Some(last) = self.rest.as_mut().and_then(|rest| rest.items.pop_back()?) else {
            return self.first.take();
        };
        self.behind -= 1;
        Some(last)
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.rest.iter().flat_map(|rest| rest.items.iter().flatten()))
    }

    /// Takes all of them, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.behind = 0;
        self.first
            .take()
            .into_iter()
            .chain(self.rest.iter_mut().flat_map(|rest| rest.items.drain(..).flatten()))
    }

    /// Keeps those of which `stays` is true, in their order.
    #[expect(clippy::cast_possible_truncation, reason = "no more than were counted before")]
    pub fn retain(&mut self, mut stays: impl FnMut(&T) -> bool) {
        self.first = self.first.take().filter(&mut stays);
        let Some(rest) = &mut self.rest else { return };
        rest.items.retain(|item| item.as_ref().is_some_and(&mut stays));
        if self.first.is_none() {
            self.first = rest.items.pop_front().flatten();
        }
        self.behind = rest.items.len() as u32;
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

/// A first-in first-out list that most owners never use: to them it is one pointer, not room for a first.
#[derive(Clone, Debug)]
pub(crate) struct RareFifo<T> {
    #[expect(clippy::box_collection, reason = "one word instead of four in owners that each frame meets")]
    items: Option<Box<VecDeque<T>>>,
}

impl<T> RareFifo<T> {
    pub(crate) const fn new() -> Self {
        Self { items: None }
    }
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.as_ref().map_or(0, |items| items.len())
    }
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.items.as_ref()?.front()
    }
    pub(crate) fn push_back(&mut self, item: T) {
        self.items.get_or_insert_default().push_back(item);
    }
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.items.as_mut()?.pop_front()
    }
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.items.iter_mut().flat_map(|items| items.drain(..))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the list of the standard library, whatever is done in whatever order.
        #[test]
        fn it_is_a_double_ended_queue(operations in proptest::collection::vec((0_u8..12, any::<u8>()), 0..60)) {
            let (mut fifo, mut model) = (Fifo::new(), VecDeque::new());
            for (operation, item) in operations {
                match operation {
                    0..=4 => { fifo.push_back(item); model.push_back(item); }
                    5 => { fifo.push_front(item); model.push_front(item); }
                    6 | 7 => prop_assert_eq!(fifo.pop_front(), model.pop_front()),
                    8 => prop_assert_eq!(fifo.pop_back(), model.pop_back()),
                    9 => { fifo.retain(|other| *other < item); model.retain(|other| *other < item); }
                    10 => prop_assert_eq!(fifo.drain().collect::<Vec<_>>(), model.drain(..).collect::<Vec<_>>()),
                    _ => { fifo.clear(); model.clear(); }
                }
                prop_assert_eq!((fifo.len(), fifo.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((fifo.front(), fifo.back()), (model.front(), model.back()));
                prop_assert!(fifo.iter().eq(&model));
            }
        }
    }
}
