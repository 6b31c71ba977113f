//! Slices that are read in the memory of another owner, such as another package. The owner is kept alive as long as the
//! slice is.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// Elements that are borrowed from another owner, and read in that owner's memory.
pub(crate) struct BorrowedSlice<T> {
    elements: NonNull<T>,
    len: usize,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: LENT-MEMORY: it is a shared reference to elements and a shared owner, both of which may go to and be used by other threads.
unsafe impl<T: Sync> Send for BorrowedSlice<T> {}
// SAFETY: LENT-MEMORY: as above.
unsafe impl<T: Sync> Sync for BorrowedSlice<T> {}

impl<T: 'static> BorrowedSlice<T> {
    /// Borrows the elements that `owner` has in its memory. `as_ref` is called once.
    pub(crate) fn of(owner: impl AsRef<[T]> + Send + Sync + 'static) -> BorrowedSlice<T> {
        let owner = Arc::new(owner);
        let elements: &[T] = (*owner).as_ref();
        BorrowedSlice { elements: NonNull::from(elements).cast(), len: elements.len(), _owner: owner }
    }
}

impl<T> Deref for BorrowedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: LENT-MEMORY: the elements are borrowed from an owner that does not move and that nothing has exclusively as
        // long as it is kept here.
        unsafe { std::slice::from_raw_parts(self.elements.as_ptr(), self.len) }
    }
}

impl<T: fmt::Debug> fmt::Debug for BorrowedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An owner that counts how many owners were dropped, and how often elements were requested.
    struct Owner {
        elements: Vec<u64>,
        asked: Arc<AtomicUsize>,
        dropped: Arc<AtomicUsize>,
    }

    impl AsRef<[u64]> for Owner {
        fn as_ref(&self) -> &[u64] {
            // A second answer would have another length than the first, with which lengths were compared.
            let asked = self.asked.fetch_add(1, Ordering::Relaxed);
            &self.elements[asked..]
        }
    }

    impl Drop for Owner {
        fn drop(&mut self) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_owner_is_asked_once_and_kept() {
        let [asked, dropped] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let lent = BorrowedSlice::of(Owner { elements: vec![7, 8, 9], asked: asked.clone(), dropped: dropped.clone() });
        assert_eq!((&lent[..], &lent[..]), (&[7, 8, 9][..], &[7, 8, 9][..]));
        let count = || (asked.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed));
        assert_eq!(count(), (1, 0));
        let sum = std::thread::spawn(move || lent.iter().sum::<u64>()).join().unwrap();
        assert_eq!((sum, count()), (24, (1, 1)));
    }
}
