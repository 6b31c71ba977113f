//! A bounded cache of values that take long to make: machine code for columns of given layouts, compiled element expressions, plans for tensors of
//! given extents, plans of products. A full cache drops the least recently used value. A session that holds a value keeps it after the cache drops
//! it.
//!
//! Reading takes no lock, because sessions of many threads ask for code that runs for a microsecond. Writing replaces the table by a copy with one
//! entry more or less, which takes microseconds; compiling takes tens of microseconds. No lock is held while a value is made: a thread that asks for
//! another value goes on, and a thread that asks for the same value waits for it.

use arc_swap::ArcSwap;
use cembra_value::CacheCounters;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A value that was just made for the cache, and whether the cache may keep it.
pub struct NewValue<T> {
    /// The value that was made.
    pub value: T,
    /// True if the cache may keep the value. False if a token or a time limit ended the computation of the value early. Then only the thread that
    /// computed the value gets it, and another thread computes it again.
    pub stays: bool,
}

/// A key and its value.
struct Entry<K, T> {
    key: K,
    /// The value; empty while a thread makes it.
    made: OnceLock<NewValue<T>>,
    /// The time of the last request, by the clock of the cache.
    asked: AtomicU64,
}

/// Entries by the hashes of their keys.
type Table<K, T> = FxHashMap<u64, SmallVec<[Arc<Entry<K, T>>; 1]>>;

/// A bounded cache of values of type `T` by keys of type `K`.
pub struct Cache<K, T> {
    most: usize,
    /// At most `most` entries. The table is immutable; a thread that holds `changes` replaces it as a whole.
    table: ArcSwap<Table<K, T>>,
    changes: Mutex<()>,
    /// The number of requests so far. It is the clock of the cache: each entry has its value at the last request of the
    /// entry.
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
    making_nanoseconds: AtomicU64,
}

/// The hash of `key`, as [`Cache::get`] takes it.
pub fn hash_of(key: impl Hash) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl<K, T: Clone> Cache<K, T> {
    /// Makes an empty cache with room for at most `most` values, and for at least one.
    pub fn new(most: usize) -> Cache<K, T> {
        Cache {
            most: most.max(1),
            table: ArcSwap::default(),
            changes: Mutex::default(),
            clock: AtomicU64::default(),
            hits: AtomicU64::default(),
            misses: AtomicU64::default(),
            evictions: AtomicU64::default(),
            making_nanoseconds: AtomicU64::default(),
        }
    }

    /// Returns the value of a key. The key is given by its `hash` and by `is_it`, which returns true for an equal key of the cache. If no such key is
    /// cached, `make` makes the value, once for all threads that ask for it at the same time, and `key` makes the key.
    pub fn get(&self, hash: u64, is_it: impl Fn(&K) -> bool, key: impl Fn() -> K, make: impl Fn() -> NewValue<T>) -> T {
        loop {
            let entry = find(&self.table.load(), hash, &is_it);
            let entry = entry.unwrap_or_else(|| self.insert(hash, &is_it, &key));
            let mut took = None;
            let made = entry.made.get_or_init(|| {
                let before = Instant::now();
                let made = make();
                took = Some(before.elapsed());
                made
            });
            if !made.stays {
                self.change(|table| take_out(table, hash, &entry));
            }
            match took {
                Some(took) => {
                    self.misses.fetch_add(1, Relaxed);
                    self.making_nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
                }
                // The thread that made such a value is the only one to get it.
                None if !made.stays => continue,
                None => _ = self.hits.fetch_add(1, Relaxed),
            }
            entry.asked.store(self.clock.fetch_add(1, Relaxed), Relaxed);
            return made.value.clone();
        }
    }

    /// Adds an entry for a key to the cache, unless another thread has added one since the caller looked. In a full
    /// cache the least recently requested entry is replaced.
    fn insert(&self, hash: u64, is_it: impl Fn(&K) -> bool, key: impl Fn() -> K) -> Arc<Entry<K, T>> {
        self.change(|table| {
            if let Some(entry) = find(table, hash, is_it) {
                return entry;
            }
            let oldest = || table.iter().flat_map(|(hash, bucket)| bucket.iter().map(move |entry| (*hash, entry)));
            if oldest().count() >= self.most
                && let Some((hash, entry)) = oldest().min_by_key(|(_, entry)| entry.asked.load(Relaxed))
            {
                let entry = entry.clone();
                take_out(table, hash, &entry);
                self.evictions.fetch_add(1, Relaxed);
            }
            let asked = AtomicU64::new(self.clock.fetch_add(1, Relaxed));
            let entry = Arc::new(Entry { key: key(), made: OnceLock::new(), asked });
            table.entry(hash).or_default().push(entry.clone());
            entry
        })
    }

    /// Replaces the table by a changed copy.
    fn change<R>(&self, change: impl FnOnce(&mut Table<K, T>) -> R) -> R {
        let _others_wait = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table::clone(&self.table.load());
        let result = change(&mut table);
        self.table.store(Arc::new(table));
        result
    }

    /// Drops the least recently used values until the remaining values together hold at most `most` bytes, as counted by `held`. The most recently
    /// used value always stays.
    pub(crate) fn shrink(&self, most: u64, held: impl Fn(&T) -> u64) {
        let bytes = |entry: &Entry<K, T>| entry.made.get().map_or(0, |made| held(&made.value));
        if self.sum(&held) <= most {
            return;
        }
        self.change(|table| {
            let mut all: Vec<(u64, Arc<Entry<K, T>>)> =
                table.iter().flat_map(|(hash, bucket)| bucket.iter().map(|entry| (*hash, entry.clone()))).collect();
            all.sort_unstable_by_key(|(_, entry)| entry.asked.load(Relaxed));
            let mut left = all.iter().fold(0, |left: u64, (_, entry)| left.saturating_add(bytes(entry)));
            all.pop();
            for (hash, entry) in all {
                if left <= most {
                    break;
                }
                left = left.saturating_sub(bytes(&entry));
                take_out(table, hash, &entry);
                self.evictions.fetch_add(1, Relaxed);
            }
        });
    }

    /// Returns the sum of `of` over all values in the cache.
    pub(crate) fn sum(&self, of: impl Fn(&T) -> u64) -> u64 {
        let table = self.table.load();
        let made = table.values().flatten().filter_map(|entry| entry.made.get());
        made.map(|made| of(&made.value)).fold(0, u64::saturating_add)
    }

    /// Returns the numbers of hits, misses, evictions and stored values, and the time that making the values took.
    pub fn counters(&self) -> CacheCounters {
        CacheCounters {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            kept: self.table.load().values().map(SmallVec::len).sum(),
            making_time: Duration::from_nanos(self.making_nanoseconds.load(Relaxed)),
            ..CacheCounters::default()
        }
    }
}

fn find<K, T>(table: &Table<K, T>, hash: u64, is_it: impl Fn(&K) -> bool) -> Option<Arc<Entry<K, T>>> {
    table.get(&hash)?.iter().find(|entry| is_it(&entry.key)).cloned()
}

/// Removes an entry, if it is still in the table.
fn take_out<K, T>(table: &mut Table<K, T>, hash: u64, entry: &Arc<Entry<K, T>>) {
    let Some(bucket) = table.get_mut(&hash) else { return };
    bucket.retain(|other| !Arc::ptr_eq(other, entry));
    if bucket.is_empty() {
        table.remove(&hash);
    }
}

impl<K, T: Clone> fmt::Debug for Cache<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    type Numbers = Cache<String, Result<usize, String>>;

    /// The cached value of a name: its length, unless the name begins with an exclamation mark.
    fn ask(cache: &Numbers, name: &str) -> Result<usize, String> {
        let value = || if name.starts_with('!') { Err(name.to_owned()) } else { Ok(name.len()) };
        let made = || NewValue { value: value(), stays: !name.starts_with("!!") };
        cache.get(hash_of(name), |known| known == name, || name.to_owned(), made)
    }

    fn kept(cache: &Numbers) -> Vec<String> {
        let table = cache.table.load();
        let mut kept: Vec<String> = table.values().flatten().map(|entry| entry.key.clone()).collect();
        kept.sort_unstable();
        kept
    }

    #[test]
    fn what_was_not_asked_for_the_longest_makes_room() {
        let cache = Numbers::new(2);
        for name in ["a", "bb", "a", "ccc", "a", "bb"] {
            assert_eq!(ask(&cache, name), Ok(name.len()));
        }
        let CacheCounters { hits, misses, evictions, kept, .. } = cache.counters();
        assert_eq!((hits, misses, evictions, kept), (2, 4, 2, 2));
    }

    #[test]
    fn what_holds_too_much_together_goes() {
        let cache = Numbers::new(10);
        for name in ["dddd", "a", "bb", "ccc", "dddd", "!"] {
            ask(&cache, name).ok();
        }
        let bytes = |made: &Result<usize, String>| made.as_ref().map_or(0, |length| *length as u64 * 100);
        cache.shrink(1000, bytes);
        assert_eq!(kept(&cache), ["!", "a", "bb", "ccc", "dddd"]);
        cache.shrink(999, bytes);
        assert_eq!(kept(&cache), ["!", "bb", "ccc", "dddd"]);
        cache.shrink(400, bytes);
        assert_eq!((kept(&cache), cache.counters().evictions), (vec!["!".to_owned(), "dddd".to_owned()], 3));
        // The value that was asked for last stays, whatever its size.
        assert_eq!(ask(&cache, "dddd"), Ok(4));
        cache.shrink(0, bytes);
        assert_eq!(kept(&cache), ["dddd"]);
    }

    #[test]
    fn equal_hashes_are_told_apart_by_keys() {
        let cache = Cache::<u32, u32>::new(3);
        let ask = |number: u32| {
            cache.get(0, |known| *known == number, || number, || NewValue { value: 10 * number, stays: true })
        };
        assert_eq!([1, 2, 1, 3, 4, 1].map(ask), [10, 20, 10, 30, 40, 10]);
        assert_eq!((cache.counters().misses, cache.counters().kept), (4, 3));
    }

    #[test]
    fn errors_are_kept_unless_they_are_of_one_thread() {
        let cache = Numbers::new(4);
        for name in ["!", "!!"] {
            assert_eq!(ask(&cache, name), Err(name.to_owned()));
        }
        assert_eq!(kept(&cache), ["!"]);
        // A thread that waits for a value which does not stay makes its own.
        let (began, goes_on) = (Barrier::new(2), Barrier::new(2));
        let made = |value, stays| NewValue { value, stays };
        let get = |make: &dyn Fn() -> NewValue<Result<usize, String>>| {
            cache.get(1, |known| known == "x", || "x".to_owned(), make)
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                get(&|| {
                    began.wait();
                    goes_on.wait();
                    made(Err("ended".to_owned()), false)
                })
            });
            began.wait();
            let second = scope.spawn(|| get(&|| made(Ok(7), true)));
            goes_on.wait();
            assert_eq!(second.join().expect("no panic"), Ok(7));
            assert_eq!(first.join().expect("no panic"), Err("ended".to_owned()));
        });
        assert_eq!(get(&|| made(Ok(8), true)), Ok(7));
    }
}
