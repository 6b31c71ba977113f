//! The spelling of masks in data: in CSV and JSON, and in rows that programs serialise. A mask is an optional unit,
//! present or missing. Only this file defines its spelling. For other types, each data format defines how a missing value
//! is written, such as an empty field, `null` or an absent key. In the text of models, the words for a mask are literals:
//! `cembra::program::cast_literal` accepts a boolean for a mask, so that the same words work.

/// The word for a mask that holds (is present). It is also the word for a true boolean: a reader who does not know that
/// a column has masks reads truth values, which are true where the masks hold.
pub const MASK_HOLDS: &str = "true";

/// Returns whether a mask with this spelling holds; `None` if the word does not spell a mask. A mask that does not hold is
/// missing.
///
/// ```
/// use cembra_value::{MASK_HOLDS, mask_holds};
///
/// assert_eq!([MASK_HOLDS, "present"].map(mask_holds), [Some(true); 2]);
/// assert_eq!(["false", "missing"].map(mask_holds), [Some(false); 2]);
/// assert_eq!(["", "1", "True", "unit"].map(mask_holds), [None; 4]);
/// ```
#[must_use]
pub fn mask_holds(word: &str) -> Option<bool> {
    match word {
        MASK_HOLDS | "present" => Some(true),
        "false" | "missing" => Some(false),
        _ => None,
    }
}
