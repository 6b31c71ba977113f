//! A pool of memory for tiles. When the last tile that uses a list of elements is dropped, the list returns to the
//! pool, and later tiles of the same length use it again. This saves time, because the system clears the pages of new
//! memory when they are first written, which is a large part of the time of a product of small tiles.

use cembra_value::tensor::{Buffer, Data, Element};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A type of elements whose memory a pool can reuse. Code outside of this crate cannot name this trait.
pub trait Recycled: Element {
    /// Returns the lists in a pool whose elements have this type, grouped by length.
    fn lists(lists: &mut Lists) -> &mut ByLength<Self>;
}

/// Unused lists of elements, grouped by their length.
type ByLength<T> = BTreeMap<usize, Vec<Vec<T>>>;

/// The unused lists of elements in a pool, and their total size in bytes.
#[derive(Default)]
pub struct Lists {
    bytes: usize,
    singles: ByLength<f32>,
    doubles: ByLength<f64>,
}

impl Recycled for f32 {
    fn lists(lists: &mut Lists) -> &mut ByLength<f32> {
        &mut lists.singles
    }
}

impl Recycled for f64 {
    fn lists(lists: &mut Lists) -> &mut ByLength<f64> {
        &mut lists.doubles
    }
}

/// A pool of unused lists of elements, which take at most `most_bytes` bytes in total.
pub(crate) struct Pool {
    most_bytes: usize,
    /// The lists of elements in the pool, of at most `most_bytes` bytes.
    lists: Mutex<Lists>,
}

impl Pool {
    pub(crate) fn new(most_bytes: usize) -> Pool {
        Pool { most_bytes, lists: Mutex::default() }
    }

    /// Takes a list of `len` elements with arbitrary values from the pool; `None` if the pool has none of this length.
    pub(crate) fn take<T: Recycled>(self: &Arc<Pool>, len: usize) -> Option<Pooled<T>> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let list = T::lists(&mut lists).get_mut(&len)?.pop()?;
        lists.bytes = lists.bytes.saturating_sub(size_of_val(&list[..]));
        Some(Pooled { elements: list, pool: Arc::downgrade(self) })
    }

    /// Wraps elements so that they return to this pool when they are dropped.
    pub(crate) fn lend<T: Recycled>(self: &Arc<Pool>, elements: Vec<T>) -> Pooled<T> {
        Pooled { elements, pool: Arc::downgrade(self) }
    }

    /// Frees all unused lists if they take more than `most_bytes` bytes together.
    pub(crate) fn shrink(&self, most_bytes: usize) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.bytes > most_bytes {
            *lists = Lists::default();
        }
    }

    /// The total size of the unused lists in the pool, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Adds an unused list to the pool. If it does not fit, all lists of other lengths are freed first, because they
    /// probably belong to earlier evaluations. If it still does not fit, the list is freed.
    fn keep<T: Recycled>(&self, list: Vec<T>) {
        let bytes = size_of_val(&list[..]);
        if bytes == 0 || bytes > self.most_bytes {
            return;
        }
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.bytes > self.most_bytes - bytes {
            let own = T::lists(&mut lists).remove(&list.len()).unwrap_or_default();
            *lists = Lists { bytes: own.len() * bytes, ..Lists::default() };
            T::lists(&mut lists).insert(list.len(), own);
        }
        if lists.bytes <= self.most_bytes - bytes {
            lists.bytes += bytes;
            T::lists(&mut lists).entry(list.len()).or_default().push(list);
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a pool of {} bytes of {}", self.bytes(), self.most_bytes)
    }
}

/// A list of elements that returns to its pool when it is dropped, if the pool still exists.
#[derive(Debug)]
pub(crate) struct Pooled<T: Recycled> {
    elements: Vec<T>,
    pool: Weak<Pool>,
}

impl<T: Recycled> Pooled<T> {
    /// Wraps elements that belong to no pool, so that they are freed when they are dropped.
    pub(crate) fn free(elements: Vec<T>) -> Pooled<T> {
        Pooled { elements, pool: Weak::new() }
    }

    pub(crate) fn elements_mut(&mut self) -> &mut [T] {
        &mut self.elements
    }

    /// Converts the elements to the data of a tensor.
    pub(crate) fn into_data(mut self) -> Data {
        if self.pool.strong_count() == 0 {
            T::data(std::mem::take(&mut self.elements))
        } else {
            T::data(Buffer::lent(self))
        }
    }
}

impl<T: Recycled> AsRef<[T]> for Pooled<T> {
    fn as_ref(&self) -> &[T] {
        &self.elements
    }
}

impl<T: Recycled> Drop for Pooled<T> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.keep(std::mem::take(&mut self.elements));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_by_their_length_and_never_take_more_than_there_may_be() {
        let pool = Arc::new(Pool::new(100));
        let list = pool.lend(vec![1.0_f64; 4]);
        let first = list.as_ref().as_ptr();
        drop(list);
        assert_eq!(pool.bytes(), 32);
        assert!(pool.take::<f64>(3).is_none() && pool.take::<f32>(4).is_none());
        let again = pool.take::<f64>(4).expect("it was kept");
        assert_eq!((again.as_ref().as_ptr(), pool.bytes()), (first, 0));
        // Three of 32 bytes fit. The fourth does not, and one of another length takes the place of all.
        let lists: Vec<Pooled<f64>> = (0..4).map(|_| pool.lend(vec![0.0; 4])).collect();
        drop(lists);
        assert_eq!(pool.bytes(), 96);
        drop(pool.lend(vec![0.0_f32; 5]));
        assert_eq!(pool.bytes(), 20);
        drop(pool.lend(vec![0.0_f32; 26]));
        assert_eq!(pool.bytes(), 20);
        pool.shrink(20);
        assert_eq!(pool.bytes(), 20);
        pool.shrink(19);
        assert_eq!(pool.bytes(), 0);
        drop(pool);
        // Elements outlive their pool.
        assert_eq!(again.as_ref(), [1.0; 4]);
    }
}
