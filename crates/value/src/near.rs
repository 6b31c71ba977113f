//! Suggestions for unknown names: known names at a small edit distance. Computing a distance takes time proportional to
//! the product of the lengths of both names. The model or the data determines these lengths, so this file bounds the
//! time. `Limits::problems` bounds the number of names for which suggestions are made.

/// The most bytes of a name that gets suggestions or is suggested.
const LONGEST: usize = 64;

/// The most known names that are considered.
const LOOKED_AT: usize = 10_000;

/// The most pairs of characters that are compared for one unknown name, summed over all known names.
const COMPARED: usize = 1 << 18;

/// The most names that are suggested.
const SUGGESTED: usize = 3;

/// Returns up to three known names that are at most `typos` typos away from `name`: the nearest first, and equally near
/// ones in the order of `known`. A typo is an added, missing or different character, or two swapped ones. Case and
/// white space around a name do not count. Long names get no suggestions, and of very many known names only some are
/// considered.
///
/// ```
/// use cembra_value::near_names;
///
/// assert_eq!(near_names("Lenght", 2, ["width", "length", "length2"]), ["length", "length2"]);
/// assert!(near_names("depth", 2, ["width", "length"]).is_empty());
/// assert!(near_names(&"a".repeat(100), 2, [&*"a".repeat(99)]).is_empty());
/// ```
#[must_use]
pub fn near_names<'n>(name: &str, typos: usize, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let Some(wanted) = folded(name) else { return Vec::new() };
    let mut left = COMPARED;
    let mut found: Vec<(usize, &str)> = Vec::new();
    for other in known.into_iter().take(LOOKED_AT) {
        let Some(theirs) = folded(other).filter(|theirs| wanted.letters.abs_diff(theirs.letters) <= typos) else {
            continue;
        };
        // A comparison has a fixed cost too.
        let cost = (wanted.letters + 1) * (theirs.letters + 1);
        let Some(rest) = left.checked_sub(cost) else { break };
        left = rest;
        let distance = strsim::osa_distance(&wanted.text, &theirs.text);
        // A name that shares no character with the wanted one was not meant.
        if distance <= typos && distance < theirs.letters {
            found.push((distance, other));
        }
    }
    found.sort_by_key(|(distance, _)| *distance);
    found.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

/// A name in the form in which names are compared (in lower case, without white space around it), and its number of characters.
struct Folded {
    text: String,
    letters: usize,
}

/// Trims a name and converts it to lower case; `None` if it is too long.
fn folded(name: &str) -> Option<Folded> {
    if name.len() > LONGEST {
        return None;
    }
    let text = name.trim().to_lowercase();
    let letters = text.chars().count();
    Some(Folded { text, letters })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first() {
        let known = ["prize", " Price ", "pride", "rice", "prices", "x"];
        assert_eq!(near_names("price", 1, known), [" Price ", "prize", "pride"]);
        assert_eq!(near_names("pirce", 1, known), [" Price "]);
        assert_eq!(near_names("PRICE", 0, known), [" Price "]);
    }

    #[test]
    fn a_name_of_which_nothing_is_left_is_not_suggested() {
        assert!(near_names("y", 3, ["x", "", "ab"]).is_empty());
    }

    #[test]
    fn long_names_are_neither_looked_for_nor_suggested() {
        let (fits, long) = ("é".repeat(32), "é".repeat(33));
        assert_eq!(near_names(&"é".repeat(31), 1, [&*fits]), [&*fits]);
        assert!(near_names(&fits, 1, [&*long]).is_empty());
        assert!(near_names(&long, 1, [&*fits, &*long]).is_empty());
    }

    #[test]
    fn very_many_names_are_not_all_compared() {
        // Names of another length cost almost nothing; other names use up the allowance.
        let (short, near) = (vec!["a"; 9_999], "abcdefgh");
        let behind = |before: Vec<&'static str>| near_names("abcdefgi", 1, before.into_iter().chain([near]));
        assert_eq!(behind(short.clone()), [near]);
        assert!(behind([short, vec!["a"]].concat()).is_empty());
        let alike = COMPARED / 81;
        assert_eq!(behind(vec!["zzzzzzzz"; alike - 1]), [near]);
        assert!(behind(vec!["zzzzzzzz"; alike]).is_empty());
    }
}
