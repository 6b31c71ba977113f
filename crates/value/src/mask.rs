//! How a mask, an optional unit, is written in data: in CSV and JSON, and in rows that programs serialise. This is the one place that
//! says it. What missing values of all types look like (an empty field, `null`, an absent key) is a form's own business, and in
//! the text of models the words are literals: `cembra::cast_literal` takes a boolean for a mask, so that the same words do.

/// A mask that holds, as it is written. It is the word for a truth value too: who does not know that a column holds masks reads
/// truth values, which hold as conditions where the masks do.
pub const MASK_HOLDS: &str = "true";

/// Whether the mask holds that a word in data stands for; none if it stands for no mask. One that does not hold is missing.
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
