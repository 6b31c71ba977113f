//! The names of a checkpoint's files. A tensor's name may have any characters. File names have only ASCII letters,
//! digits and a few signs, which every system accepts.

use blake3::Hash;
use std::fmt::Write;

/// The file name of a checkpoint's manifest.
pub(super) const MANIFEST: &str = "manifest.json";

/// The most bytes of a tensor's name in the file name of its shard. Some systems allow 255 bytes for the whole file name.
const MOST_BYTES: usize = 96;

/// The number of hexadecimal digits of a hash that are in the name of a shard: half of the hash's digits.
const DIGITS: usize = blake3::OUT_LEN;

/// Returns the file name of a shard, `NAME-HASH.RANK`: the tensor's name, the hash of the shard's index, and the rank that wrote it. Each
/// byte of the tensor's name that is not an ASCII letter, a digit, `_` or `-` is written as `%` and two hexadecimal digits, and a long name
/// is cut.
///
/// Shards with the same file name have the same bytes, because the index has the hashes of the tensor's name and of all tiles. So no shard
/// overwrites one of another tensor, or of an older checkpoint in the same directory.
pub(super) fn shard(tensor: &str, index: &Hash, rank: usize) -> String {
    let mut name = String::new();
    for byte in tensor.bytes() {
        let written = if is_plain(byte) { 1 } else { 3 };
        if name.len() + written > MOST_BYTES {
            break;
        }
        // Writing to a text cannot fail.
        let _never_fails = if is_plain(byte) { name.write_char(byte.into()) } else { write!(name, "%{byte:02X}") };
    }
    let digits = index.to_hex();
    let _never_fails = write!(name, "-{}.{rank}", digits.get(..DIGITS).unwrap_or_default());
    name
}

/// Returns true if `name` has the form of the file names that [`shard`] returns; such a name never leads out of the directory.
pub(super) fn is_shard(name: &str) -> bool {
    let parts = name.rsplit_once('.').and_then(|(name, rank)| Some((name.rsplit_once('-')?, rank)));
    let Some(((tensor, digits), rank)) = parts else { return false };
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    tensor.len() <= MOST_BYTES
        && tensor.bytes().all(|byte| is_plain(byte) || byte == b'%')
        && digits.len() == DIGITS
        && digits.bytes().all(is_digit)
        && (1..=10).contains(&rank.len())
        && rank.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if a file name has this byte of a tensor's name unchanged: a letter, a digit, `_` or `-`.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
