//! FIFO lists that seldom hold more than one item.
//!
//! For frames on a link, messages in a lane, effects to be taken: nearly always one or none. The first item lies in the
//! owner's own memory, so that passing one item through touches no other memory; further items go to a separate list,
//! which is allocated on first use and reused.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// A FIFO list. `rest` holds items only while `first` holds one.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    first: Option<T>,
    /// Number of items in `rest`, so that an empty `rest` need not be read.
    behind: u32,
    rest: Option<Box<Rest<T>>>,
}

/// The items behind the first.
#[derive(Clone, Debug)]
struct Rest<T> {
    /// Every element is `Some`.
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

    /// Number of items.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.behind as usize
    }

    /// Whether the list is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The oldest item.
    #[inline]
    pub const fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The youngest item.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        self.rest.as_ref().and_then(|rest| rest.items.back()?.as_ref()).or(self.first.as_ref())
    }

    /// Appends `item`.
    #[inline]
    pub fn push_back(&mut self, item: T) {
        // The place is found first, so that the item is put together there.
        let place = if self.first.is_none() { &mut self.first } else { self.place_behind() };
        *place = Some(item);
    }

    /// An empty place at the end.
    #[cold]
    fn place_behind(&mut self) -> &mut Option<T> {
        self.behind += 1;
        let items = &mut self.rest.get_or_insert_default().items;
        items.push_back(None);
        let last = items.len() - 1;
        &mut items[last]
    }

    /// Inserts `item` before all others.
    pub fn push_front(&mut self, item: T) {
        if let Some(second) = self.first.replace(item) {
            self.rest.get_or_insert_default().items.push_front(Some(second));
            self.behind += 1;
        }
    }

    /// Removes and returns the oldest item.
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

    /// Removes and returns the youngest item.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        let Some(last) = self.rest.as_mut().and_then(|rest| rest.items.pop_back()?) else {
            return self.first.take();
        };
        self.behind -= 1;
        Some(last)
    }

    /// All items, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.rest.iter().flat_map(|rest| rest.items.iter().flatten()))
    }

    /// Removes and returns all items, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.behind = 0;
        self.first
            .take()
            .into_iter()
            .chain(self.rest.iter_mut().flat_map(|rest| rest.items.drain(..).flatten()))
    }

    /// Retains the items for which `stays` is true, in their order.
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

    /// Removes all items.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

/// A FIFO list that most owners never use: it costs them one pointer, not the size of an item.
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
