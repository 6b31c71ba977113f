//! Compares `include/cembra_compiler.h`, which is written by hand, with the functions and structs in Rust: cbindgen must generate the same
//! declarations from them. Comments and the values of enum constants are not compared, except that the constants of types are compared with
//! `src/kinds.rs`.

use cbindgen::{Builder, Config, Language};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Pairs of names: that of a type in Rust, and that of the type in C.
const NAMES: [(&str, &str); 21] = [
    ("Array", "cembra_array"),
    ("ByteString", "cembra_bytes"),
    ("Cancellation", "cembra_cancellation"),
    ("Column", "cembra_column"),
    ("ColumnMut", "cembra_column_mut"),
    ("Error", "cembra_error"),
    ("FFI_ArrowArray", "ArrowArray"),
    ("FFI_ArrowSchema", "ArrowSchema"),
    ("Fault", "cembra_fault"),
    ("Field", "cembra_field"),
    ("Flag", "bool"),
    ("List", "cembra_list"),
    ("Member", "cembra_member"),
    ("Options", "cembra_options"),
    ("Problem", "cembra_problem"),
    ("Program", "cembra_program"),
    ("Session", "cembra_session"),
    ("Struct", "cembra_struct"),
    ("Tensor", "cembra_tensor"),
    ("Text", "cembra_text"),
    ("Value", "cembra_value"),
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the tokens of a C text, without comments, preprocessor lines, `struct`, and words that only matter to compilers.
fn words(text: &str) -> Vec<String> {
    let mut bare = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        bare.push_str(before);
        rest = comment.split_once("*/").expect("the end of a comment").1;
    }
    bare.push_str(rest);
    let mut words = Vec::new();
    for line in bare.lines() {
        let line = line.split("//").next().unwrap_or_default();
        if line.trim_start().starts_with('#') || line.contains("extern \"C\"") {
            continue;
        }
        let mut word = String::new();
        for sign in line.chars().chain([' ']) {
            if sign.is_alphanumeric() || sign == '_' {
                word.push(sign);
                continue;
            }
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if !sign.is_whitespace() {
                words.push(sign.to_string());
            }
        }
    }
    let renamed = |word: String| match NAMES.iter().find(|(rust, _)| *rust == word) {
        Some((_, c)) => (*c).to_owned(),
        None => word,
    };
    words.retain(|word| word != "struct" && word != "CEMBRA_MUST_USE");
    words.into_iter().map(renamed).collect()
}

/// Returns the prototypes of functions in a C text, one line each.
fn prototypes(text: &str) -> BTreeSet<String> {
    let words = words(text);
    let mut found = BTreeSet::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| *word == "(") {
        if !at.checked_sub(1).is_some_and(|name| words[name].starts_with("cembra_")) {
            continue;
        }
        let start = words[..at].iter().rposition(|word| [";", "}", "{"].contains(&&**word)).map_or(0, |end| end + 1);
        let end = at + words[at..].iter().position(|word| word == ")").expect("the end of a list");
        if words.get(end + 1).is_some_and(|word| word == ";") && !words[start..at].contains(&"typedef".to_owned()) {
            found.insert(words[start..=end].join(" "));
        }
    }
    found
}

/// Returns the fields of the struct or union whose opening brace is the token `open`, and the index of its closing brace.
fn fields(words: &[String], open: usize) -> (String, usize) {
    let (mut depth, mut end) = (0_usize, open);
    for (at, word) in words.iter().enumerate().skip(open) {
        depth = if word == "{" {
            depth + 1
        } else if word == "}" {
            depth - 1
        } else {
            depth
        };
        if depth == 0 {
            end = at;
            break;
        }
    }
    // `T a, b;` is `T a; T b;`.
    let mut all = Vec::new();
    for one in words[open + 1..end].split(|word| word == ";").filter(|one| !one.is_empty()) {
        let parts: Vec<&[String]> = one.split(|word| word == ",").collect();
        let kind = &parts[0][..parts[0].len() - 1];
        all.push(parts[0].join(" "));
        all.extend(parts[1..].iter().map(|part| [kind, part].concat().join(" ")));
    }
    (all.join("; "), end)
}

/// Returns the fields of the structs that a C text defines, by the name of the struct.
fn structs(text: &str) -> BTreeMap<String, String> {
    let words = words(text);
    let mut found = BTreeMap::new();
    let mut at = 0;
    while at + 1 < words.len() {
        if words[at] != "typedef" || !words[at + 1..words.len().min(at + 4)].contains(&"{".to_owned()) {
            at += 1;
            continue;
        }
        let open = at + words[at..].iter().position(|word| word == "{").expect("a bracket");
        let (inside, end) = fields(&words, open);
        found.insert(words[end + 1].clone(), inside);
        at = end + 1;
    }
    found
}

fn sources() -> Vec<PathBuf> {
    let all = fs::read_dir(folder().join("src")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut all: Vec<PathBuf> = all.collect();
    all.sort();
    all
}

/// Returns the declarations that cbindgen generates from the Rust sources.
fn generated() -> String {
    let config = Config { language: Language::C, usize_is_size_t: true, ..Config::default() };
    let builder = Builder::new().with_config(config);
    let builder = sources().into_iter().fold(builder, Builder::with_src);
    let mut made = Vec::new();
    builder.generate().expect("declarations").write(&mut made);
    String::from_utf8(made).expect("text")
}

fn header() -> String {
    fs::read_to_string(folder().join("include/cembra_compiler.h")).expect("the header")
}

#[test]
fn the_header_declares_the_functions_that_there_are() {
    let (found, expected) = (prototypes(&header()), prototypes(&generated()));
    assert!(expected.len() >= 35, "{}", expected.len());
    let apart: Vec<&String> = found.symmetric_difference(&expected).collect();
    assert!(apart.is_empty(), "{apart:#?}");
}

#[test]
fn the_header_defines_the_structs_that_there_are() {
    let shared = folder().join("../../runtime/include/cembra.h");
    let both = [header(), fs::read_to_string(shared).expect("the header of the runtime")].concat();
    let (found, expected) = (structs(&both), structs(&generated()));
    let union = expected.get("Payload").expect("the union");
    let inline = |text: &str| text.replace("union Payload as", &format!("union {{ {union} }} as"));
    let mut compared = 0;
    for (name, fields) in expected.iter().filter(|(name, _)| name.starts_with("cembra_")) {
        let plain = |text: &str| text.replace("{ ", "{").replace(" }", "}").replace("; }", "}").replace(';', "");
        let squeezed = |text: &str| plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(found.get(name).map(|found| squeezed(found)), Some(squeezed(&inline(fields))), "{name}");
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn numbers_are_those_of_the_header() {
    let kinds = fs::read_to_string(folder().join("src/kinds.rs")).expect("a file");
    let mut numbers = 0;
    for line in kinds.lines().filter_map(|line| line.strip_prefix("pub(crate) const ")) {
        let Some((name, number)) = line.split_once(": u32 = ") else { continue };
        let family = if name.starts_with("PRESENCE_") { "CEMBRA" } else { "CEMBRA_KIND" };
        let stated = format!("{family}_{name} = {}", number.trim_end_matches(';'));
        assert!(header().contains(&format!("{stated},")) || header().contains(&format!("{stated}\n")), "{stated}");
        numbers += 1;
    }
    assert_eq!(numbers, 21);
    assert!(header().contains(&format!("#define CEMBRA_ABI_VERSION {}u", cembra::ABI_VERSION)));
}
