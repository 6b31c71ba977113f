//! Keys of the code cache: a hash of everything that machine code depends on. The hash is the name of a cache entry's file,
//! and the key of the entry's checksum. So an entry that was damaged, truncated or renamed fails the check.

use super::super::isa::{Codegen, Tier};
use cembra_plan::{Binding, Plan};
use cembra_runtime::interface;
use cembra_value::Limits;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

/// The offset in a cache entry of the code's stack size and the code. The magic and the checksum come before.
const HEADER: usize = Key::MAGIC.len() + blake3::OUT_LEN;
/// The file name extension of cache entries.
const ENDING: &str = ".code";

/// The key of a cache entry: a hash of everything that its machine code depends on.
pub(super) struct Key(blake3::Hash);

impl Key {
    /// The bytes with which each cache entry begins, including the version of the format.
    pub(super) const MAGIC: &[u8; 16] = b"cembra code  01\n";
    /// The number of bytes in a cache entry besides the machine code: the header, and the code's stack size.
    pub(super) const OVERHEAD: usize = HEADER + size_of::<u64>();

    /// Returns the key of the machine code that `plan` is compiled to.
    pub(super) fn of(codegen: &Codegen, plan: &Plan, binding: &Binding, tier: Tier, limits: &Limits) -> Key {
        let mut bytes = Bytes(Vec::with_capacity(64 * (plan.step_count() + plan.value_count())));
        let Binding { inputs, outputs } = binding;
        (inputs, outputs, tier, limits).hash(&mut bytes);
        plan.hash_code(&mut bytes);
        Key(surroundings(codegen, tier).clone().update(&bytes.0).finalize())
    }

    /// Returns the name of the file that stores this key's cache entry.
    pub(super) fn file_name(&self) -> String {
        format!("{}{ENDING}", self.0.to_hex())
    }

    /// Returns true if `name` has the form of a cache entry's file name.
    pub(super) fn is_file_name(name: &str) -> bool {
        name.strip_suffix(ENDING).is_some_and(|hash| blake3::Hash::from_hex(hash).is_ok())
    }

    fn checksum(&self, body: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(self.0.as_bytes(), body)
    }

    /// Makes the cache entry with this key, for machine code that takes `stack` bytes of stack.
    pub(super) fn seal(&self, code: &[u8], stack: usize) -> Vec<u8> {
        let body = [&(stack as u64).to_le_bytes(), code].concat();
        [Key::MAGIC.as_slice(), self.checksum(&body).as_bytes(), &body].concat()
    }

    /// Returns the machine code in a cache entry, and the bytes of stack that it takes. `None` if `entry` is damaged or has
    /// another key.
    pub(super) fn open<'e>(&self, entry: &'e [u8]) -> Option<(&'e [u8], usize)> {
        let (header, body) = entry.split_at_checked(HEADER)?;
        let checksum = header.strip_prefix(Key::MAGIC)?;
        let (stack, code) = body.split_first_chunk()?;
        let stack = usize::try_from(u64::from_le_bytes(*stack)).ok()?;
        (!code.is_empty() && self.checksum(body).as_bytes() == checksum).then_some((code, stack))
    }
}

/// The hash of everything that the code of every plan depends on, computed once per tier.
fn surroundings(codegen: &Codegen, tier: Tier) -> &'static blake3::Hasher {
    static HOSTS: [OnceLock<blake3::Hasher>; 2] = [OnceLock::new(), OnceLock::new()];
    let (version, sources) = (env!("CARGO_PKG_VERSION"), env!("CEMBRA_CODE_SOURCES"));
    HOSTS[tier as usize]
        .get_or_init(|| hash_surroundings(codegen, [version, sources, cranelift_codegen::VERSION, &interface()]))
}

/// Hashes versions (of cembra, of its sources, of the code generator, of the agreement between code and runtime), the
/// processor with its extensions, and the settings.
fn hash_surroundings(codegen: &Codegen, versions: [&str; 4]) -> blake3::Hasher {
    let Codegen { fast, optimising } = codegen;
    let mut parts: Vec<String> = versions.into_iter().map(str::to_owned).collect();
    for isa in [fast].into_iter().chain(optimising) {
        let extensions: Vec<String> = isa.isa_flags().iter().map(ToString::to_string).collect();
        parts.extend([isa.triple().to_string(), isa.flags().to_string(), extensions.join("\n")]);
    }
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher
}

/// The bytes to hash, collected first, because hashing many small pieces is slower than one large one.
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        // Not used: the digest is computed from the bytes.
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::isa::{self, Target};
    use super::*;

    fn key(name: &str) -> Key {
        Key(blake3::hash(name.as_bytes()))
    }

    #[test]
    fn an_entry_opens_with_its_own_key_and_whole_only() {
        let (code, own) = ([0x90, 0xc3, 0x00], key("own"));
        let entry = own.seal(&code, 48);
        assert_eq!(own.open(&entry), Some((&code[..], 48)));
        assert_eq!(key("another").open(&entry), None);
        for length in 0..entry.len() {
            assert_eq!(own.open(&entry[..length]), None, "cut to {length} bytes");
        }
        for at in 0..entry.len() {
            let mut damaged = entry.clone();
            damaged[at] ^= 1;
            assert_eq!(own.open(&damaged), None, "byte {at}");
        }
        assert_eq!(own.open(&[entry.as_slice(), &[0]].concat()), None);
        assert_eq!(own.open(&own.seal(&[], 0)), None, "no code is no function");
    }

    #[test]
    fn other_versions_and_processors_have_other_keys() {
        let [baseline, fused] = ["", "has_fma"].map(|feature| {
            let target = if feature.is_empty() { Target::host() } else { Target::host().feature(feature) };
            isa::of(&target, Tier::Optimised).expect("a target")
        });
        let versions = ["0.1.0", "a", "0.135.8", "revision 1"];
        let mut found = vec![hash_surroundings(&baseline, versions).finalize()];
        found.push(hash_surroundings(&fused, versions).finalize());
        for at in 0..versions.len() {
            let mut other = versions;
            other[at] = "b";
            found.push(hash_surroundings(&baseline, other).finalize());
        }
        for (at, one) in found.iter().enumerate() {
            assert!(!found[..at].contains(one), "{at}");
        }
        assert_eq!(hash_surroundings(&baseline, versions).finalize(), found[0]);
    }

    #[test]
    fn an_entry_of_another_layout_is_not_opened() {
        let isas = isa::of(&Target::host(), Tier::Optimised).expect("a target");
        let key = |interface: &str| Key(hash_surroundings(&isas, ["0.1.0", "a", "0.135.8", interface]).finalize());
        let text = interface();
        let (own, code) = (key(&text), [0x90, 0xc3]);
        assert_eq!(key(&text).open(&own.seal(&code, 0)), Some((&code[..], 0)));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().any(|line| line.starts_with("Context.rounds_left ")), "{text}");
        for at in 0..lines.len() {
            let moved = format!("{}0", lines[at]);
            let other = key(&([&lines[..at], &[&moved], &lines[at + 1..]].concat().join("\n") + "\n"));
            assert_eq!(own.open(&other.seal(&code, 0)), None, "{moved}");
            assert_ne!(own.file_name(), other.file_name(), "{moved}");
        }
    }
}
