//! The code cache: a folder that keeps machine code from one process to the next. An entry is a file whose name is the hash
//! of everything that its code depends on. The entry is used only if its checksum, which is keyed with that hash, is right.
//! Otherwise it is a cache miss, and the code is compiled as without a cache.

mod folder;
mod key;

use super::code;
use super::compile::{Compiled, install};
use super::isa::{self, Tier};
use crate::error::Error;
use cembra_plan::{Binding, Plan};
use cembra_value::{Budget, CacheCounters, Diagnostic};
use folder::Folder;
use key::Key;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of machine code that outlives the process. Clones refer to the same cache. Any number of processes may use the folder at once.
///
/// Code from the folder is run, so anyone who can write to it could run any code as this user. Therefore a folder is refused
/// if others can write to it, or replace it by renaming a folder above it.
///
/// ```
/// use cembra_native::CodeCache;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let home = folder.path();
/// let cache = CodeCache::open(home.join("code"))?;
/// assert_eq!(cache.counters().hits, 0);
/// # Ok::<(), cembra_value::Diagnostic>(())
/// ```
#[derive(Clone, Debug)]
pub struct CodeCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: Folder,
    hits: AtomicU64,
    misses: AtomicU64,
    damaged: AtomicU64,
    bypassed: AtomicU64,
}

impl CodeCache {
    /// The default limit for the size of a cache folder: 256 MiB for all its files together.
    pub const MOST_BYTES: u64 = 256 << 20;

    /// Opens a folder as a cache. A folder that does not exist is created, with access for this user only.
    ///
    /// # Errors
    /// If the folder cannot be created or read, if the folder or one above it belongs to another user or can be written by
    /// others, or if the system has no Unix permissions.
    pub fn open(folder: impl AsRef<Path>) -> Result<CodeCache, Diagnostic> {
        CodeCache::open_within(folder, CodeCache::MOST_BYTES)
    }

    /// Opens a folder as a cache of about `most` bytes at most. If the folder grows larger, its oldest files are removed.
    ///
    /// # Errors
    /// The errors of [`open`](CodeCache::open).
    pub fn open_within(folder: impl AsRef<Path>, most: u64) -> Result<CodeCache, Diagnostic> {
        let folder = Folder::open(folder.as_ref(), most)?;
        let [hits, misses, damaged, bypassed] = [(); 4].map(|()| AtomicU64::new(0));
        Ok(CodeCache(Arc::new(Inner { folder, hits, misses, damaged, bypassed })))
    }

    /// Returns the counts of cache hits, misses and other events since the cache was opened. Events of all clones of this value count.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        let Inner { folder: _, hits, misses, damaged, bypassed } = &*self.0;
        let [hits, misses, damaged, bypassed] =
            [hits, misses, damaged, bypassed].map(|count| count.load(Ordering::Relaxed));
        CacheCounters { hits, misses, damaged, bypassed, ..CacheCounters::default() }
    }

    /// Takes the machine code of a plan from the cache, or compiles the plan as [`compile`](crate::compile) does and stores
    /// the code in the cache. A failure to store the code is ignored.
    ///
    /// # Errors
    /// The errors of [`compile`](crate::compile).
    pub fn compile(&self, plan: &Plan, binding: &Binding, tier: Tier, budget: &Budget) -> Result<Compiled, Error> {
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        let inner = &*self.0;
        if plan.has_rules_of_users() {
            count(&inner.bypassed);
            return crate::compile(plan, binding, tier, budget);
        }
        let codegen = isa::host(tier)?;
        let key = Key::of(&codegen, plan, binding, tier, budget.limits());
        // Larger code would be refused by the compilation.
        let most = budget.limits().code_bytes.saturating_add(Key::OVERHEAD);
        let entry = inner.folder.read(&key, most as u64);
        if let Ok(Some((kept, stack))) = entry.as_ref().map(|entry| key.open(entry)) {
            count(&inner.hits);
            // SAFETY: CODE-CACHE: the entry is from a folder that only this user can write to, under the key of this plan.
            return unsafe { install(plan, kept, stack, true) };
        }
        count(&inner.misses);
        if !matches!(&entry, Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
            count(&inner.damaged);
        }
        let made = code::generate(plan, binding, tier, &codegen, budget, None)?;
        inner.folder.write(&key, &key.seal(&made.bytes, made.stack));
        // SAFETY: CODE-ENTRY: the code was made of the plan just above.
        unsafe { install(plan, &made.bytes, made.stack, false) }
    }
}
