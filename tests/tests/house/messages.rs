//! Texts that users read: the string literals of at least four words in the sources. They are found by reading, so the list also has a few texts that
//! nobody but a developer sees. The list is written to `messages.txt` in the build's folder for tests, to be read in one go.

use crate::house::{is_library, sources};
use crate::modules::{literals, without_tests};
use std::fmt::Write as _;
use std::path::Path;

/// Crates without messages to users, and the crate whose texts are models that tests write.
const SILENT: [&str; 2] = ["crates/fuzzing/", "crates/tape/"];

/// Words that no message has: a demand says "must", and words of the code have a public name.
const NEVER: [&str; 9] =
    ["so many", "as said", "is told", "nobody", "should", "its stretch", "of a sweep", "on its tape", "of a strip"];

/// The number of messages that name a function of Rust, and no other door, in the crates below the Python package and the library for C. It may only
/// become smaller: such a function is named where only Rust can call it.
const OF_RUST: usize = 0;

/// Returns true if a text names a function by its type, such as `Session::evaluate`.
fn names_rust(text: &str) -> bool {
    text.match_indices("::").any(|(at, _)| {
        let name = text[..at].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        name.starts_with(char::is_uppercase) && text[at + 2..].starts_with(|c: char| c.is_lowercase())
    })
}

#[test]
fn messages_are_plain() {
    let (mut list, mut wrong, mut of_rust) = (String::new(), Vec::new(), Vec::new());
    for (file, text) in sources() {
        if !is_library(&file) || SILENT.iter().any(|silent| file.starts_with(silent)) || file.contains("/tests") {
            continue;
        }
        for text in literals(without_tests(&text)) {
            let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 1).count();
            if words < 4 || !text.contains(' ') {
                continue;
            }
            writeln!(list, "{file}: {text}").expect("a text takes all");
            let is_binding = ["crates/python/", "crates/capi/"].iter().any(|door| file.starts_with(door));
            if NEVER.iter().any(|words| text.contains(words)) || is_binding && names_rust(&text) {
                wrong.push(format!("{file}: {text}"));
            } else if names_rust(&text) && !text.contains("in Rust") {
                of_rust.push(format!("{file}: {text}"));
            }
        }
    }
    assert!(list.lines().count() > 2000, "{}", list.lines().count());
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("messages.txt"), list).expect("the list is written");
    assert!(wrong.is_empty(), "messages with words of the inside, or of another door:\n{}", wrong.join("\n"));
    assert_eq!(of_rust.len(), OF_RUST, "messages that name functions of Rust:\n{}", of_rust.join("\n"));
}
