//! First tries: what people write who come from another language, and what they are answered. `first_tries.toml` has the tries with the answers,
//! and `docs/from/elsewhere.md` is made of it; set `CEMBRA_REWRITE` to write both instead of comparing. What a hint says to write is compiled, and
//! each name of the table of foreign names is tried.

use cembra::{Backend, Error, Model, Options};
use cembra_expr::{Foreign, ForeignUse, KEYWORDS, POSITIONAL_WORDS, foreign_names};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A try, and its answer.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Try {
    /// The language that it is from.
    from: String,
    /// An expression, or a statement.
    text: String,
    /// True if the inputs are tensors.
    #[serde(default)]
    tensors: bool,
    /// True if the text is the whole model.
    #[serde(default)]
    whole: bool,
    /// What the library says, if the text is no model.
    answer: Option<Answer>,
}

/// The first problem, and the hints of all.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    code: String,
    message: String,
    #[serde(default)]
    hints: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tries {
    #[serde(rename = "try")]
    tries: Vec<Try>,
}

/// The inputs of tries: names and types.
const INPUTS: &[(&str, &str)] = &[
    ("s", "text"),
    ("t", "text"),
    ("x", "f64"),
    ("y", "f64"),
    ("z", "f64"),
    ("n", "i32"),
    ("c", "bool"),
    ("o", "f64?"),
    ("d", "date"),
    ("e", "date"),
    ("m", "timestamp"),
    ("a", "[f64]"),
    ("b", "[f64]"),
    ("r", "{name: text}"),
    ("\"net amount\"", "f64"),
];

/// The inputs of tries with tensors.
const TENSORS: &[(&str, &str)] = &[
    ("x", "tensor[f64, 2]"),
    ("y", "tensor[f64, 2]"),
    ("a", "tensor[f64, 2]"),
    ("b", "tensor[f64, 2]"),
    ("i", "tensor[i64, 1]"),
    ("c", "tensor[bool, 2]"),
    ("rate", "f64"),
];

/// What hints have in code that is a form, needs a file, or is of Rust.
const FORMS: [&str; 8] = [
    "M.word.name(..)",
    "if condition then value else other",
    "let name = ..",
    "core.apply(f, ..)",
    "seq.make(a, b)",
    "table vat: text -> f64 = \"vat.csv\"",
    "use \"common.cem\"",
    "TensorOp",
];

/// How statements begin.
const STATEMENTS: [&str; 5] = ["input ", "let ", "fn ", "output ", "use "];

const PAGE: &str = "docs/from/elsewhere.md";

const HEAD: &str = "\
# Written elsewhere, written here

The first column has expressions as users of another language or program write them. The second column has cembra's answer: a hint with the expression
to write instead, or *the same* if the expression is valid in cembra. This page is made by a test, which also compiles the expressions in the hints.

In the expressions, `s` and `t` are texts; `x`, `y` and `z` are floats; `n` is an integer; `c` is a boolean; `o` is an `f64?`; `d` and `e` are dates;
`m` is a timestamp; `a` and `b` are arrays; `r` is a named tuple. In models with tensors, `x`, `y`, `a` and `b` are tensors of floats, `c` is a tensor
of booleans, and `i` is a tensor of indices.

";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read() -> Vec<Try> {
    let text = std::fs::read_to_string(root().join("tests/first_tries.toml")).expect("a file of tries");
    let tries: Tries = toml::from_str(&text).expect("tries");
    tries.tries
}

/// Compiles a model.
fn compile(model: &str) -> Result<(), Error> {
    Model::parse(model)?.compile(&Options::default().backend(Backend::Interpreter)).map(|_| ())
}

/// The parts of a hint that are code and may be written: not forms of calls and types, not fields of what is no input of tries, and not what is
/// written elsewhere.
fn code(hint: &str) -> impl Iterator<Item = &str> {
    const UNWRITTEN: [&str; 3] = ["its form is ", "the types are ", "a field of an input that is not declared "];
    let hint = if UNWRITTEN.iter().any(|form| hint.starts_with(form)) { "" } else { hint };
    let parts: Vec<&str> = hint.split('`').collect();
    let pairs = parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>();
    pairs.into_iter().filter(|(before, _)| !before.ends_with(", not ")).map(|(_, code)| code)
}

impl Try {
    /// The model of an expression or statement, with other definitions in front of it.
    fn model(&self, text: &str, definitions: &str) -> String {
        let word = STATEMENTS.iter().find(|word| text.starts_with(**word));
        let defined = |text: &str| text.split([' ', ':', '(']).nth(1).unwrap_or_default().to_owned();
        let hidden: Vec<String> = definitions.lines().chain(word.map(|_| text)).map(defined).collect();
        let inputs = if self.tensors { TENSORS } else { INPUTS };
        let mut model = String::new();
        for (name, of) in inputs.iter().filter(|(name, _)| !hidden.iter().any(|hidden| hidden == name)) {
            let _ = writeln!(model, "input {name}: {of}");
        }
        model += definitions;
        model
            + &match word {
                Some(&"output ") => text.to_owned(),
                Some(_) => format!("{text}\noutput answer = 1"),
                None => format!("output answer = {text}"),
            }
    }

    /// What the library says to a text: nothing if it is a model.
    fn answer_to(&self, text: &str) -> Option<Answer> {
        let model = if self.whole { text.to_owned() } else { self.model(text, "") };
        let problems = compile(&model).err()?.diagnostics();
        let first = problems.first().expect("a problem");
        let hints = problems.iter().flat_map(|problem| problem.hints()).cloned().collect();
        Some(Answer { code: first.code().to_string(), message: first.message().to_owned(), hints })
    }

    /// True if code of a hint may be written: by itself, as an operator on inputs, or as a function.
    fn may_be_written(&self, code: &str, definitions: &str) -> bool {
        if FORMS.contains(&code) || KEYWORDS.contains(&code) {
            return true;
        }
        let mut forms = vec![
            code.to_owned(),
            format!("input w: {code}"),
            format!("{code} c"),
            format!("core.map({code}, a)"),
            format!("cast(x, {code})"),
            format!("seq.size({code})"),
        ];
        forms.extend(["x", "n", "c", "s"].map(|of| format!("{of} {code} {of}")));
        let operands = [
            "x",
            "s",
            "d",
            "m",
            "a",
            "c",
            "x, x",
            "c, c",
            "n, n",
            "x, f32",
            "x, 0",
            "fn(v) = v, a",
            "fn(v) = v, (x, x)",
        ];
        forms.extend(operands.map(|of| format!("{code}({of})")));
        // Of examples of calls the operands are those of any call.
        let call = code.split_once('(').filter(|(_, operands)| [".. )", "..)", "x)", "n)"].contains(operands));
        if let Some((callee, _)) = call {
            forms.extend(operands.map(|of| format!("{callee}({of})")));
            forms.push(format!("{callee}(a > 1.0)"));
            forms.push(format!("seq.size({callee}(n))"));
        }
        forms.iter().any(|form| compile(&self.model(form, definitions)).is_ok())
    }

    /// The code of the hints that may not be written, and is not said to be no expression.
    fn wrong_code(&self) -> Vec<&str> {
        let hints = self.answer.iter().flat_map(|answer| &answer.hints);
        let (mut wrong, mut definitions) = (Vec::new(), String::new());
        for code in hints.flat_map(|hint| code(hint)) {
            let alone = self.may_be_written(code, "");
            if !alone && !self.may_be_written(code, &definitions) {
                wrong.push(code);
            }
            if code.starts_with("let ") && alone {
                let _ = writeln!(definitions, "{code}");
            }
        }
        wrong
    }

    /// The text with another name in the place of one, where that stands as names of its kind do; nothing if it stands nowhere so.
    fn with_name(&self, used_as: ForeignUse, name: &str, other: &str) -> Option<String> {
        if used_as == ForeignUse::Sign {
            return self.text.contains(name).then(|| self.text.replacen(name, other, 1));
        }
        // In small letters it is a word of the language.
        let is_word = KEYWORDS.contains(&other) || POSITIONAL_WORDS.contains(&other);
        let other = if is_word { other.to_ascii_uppercase() } else { other.to_owned() };
        let mut start = 0;
        for word in self.text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            let bare = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let end = start + bare.len();
            let (before, behind) = (&self.text[..start], &self.text[end..]);
            let is_called = behind.starts_with(['(', '=']) || before.ends_with('.');
            let stands_so =
                used_as == ForeignUse::Value || is_called != matches!(used_as, ForeignUse::Word | ForeignUse::Type);
            if stands_so && bare.to_ascii_lowercase().replace('_', "") == name {
                return Some(format!("{before}{other}{behind}"));
            }
            start += word.len();
        }
        None
    }

    /// True if this is what is said.
    fn is_told(answer: Option<&Answer>, entry: &Foreign) -> bool {
        answer.is_some_and(|answer| answer.hints.iter().any(|hint| hint == entry.hint))
    }
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn written(tries: &[Try]) -> String {
    let mut file = String::from(
        "# What people write first who come from another language, and what they are answered: `tests/tests/models/first_tries.rs`.\n",
    );
    for one in tries {
        let _ = write!(file, "\n[[try]]\nfrom = {}\ntext = {}\n", quoted(&one.from), quoted(&one.text));
        for (name, _) in [("tensors", one.tensors), ("whole", one.whole)].iter().filter(|(_, is_so)| *is_so) {
            let _ = writeln!(file, "{name} = true");
        }
        if let Some(answer) = &one.answer {
            let _ =
                writeln!(file, "[try.answer]\ncode = {}\nmessage = {}", quoted(&answer.code), quoted(&answer.message));
            let hints: Vec<String> = answer.hints.iter().map(|hint| format!("    {},\n", quoted(hint))).collect();
            let _ = writeln!(file, "hints = [\n{}]", hints.concat());
        }
    }
    file
}

/// Code in a cell of a table.
fn cell(text: &str) -> String {
    let text = text.replace('\n', "; ").replace('|', "\\|");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

fn page(tries: &[Try]) -> String {
    let mut page = String::from(HEAD);
    let mut languages: Vec<&str> = Vec::new();
    for one in tries {
        if !languages.contains(&&*one.from) {
            languages.push(&one.from);
        }
    }
    for language in languages {
        let _ = write!(page, "## {language}\n\n| written elsewhere | answered |\n|---|---|\n");
        for one in tries.iter().filter(|one| one.from == language) {
            let answer = match &one.answer {
                None => "the same".to_owned(),
                Some(answer) => answer.hints.first().unwrap_or(&answer.message).replace('|', "\\|"),
            };
            let _ = writeln!(page, "| {} | {answer} |", cell(&one.text));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

#[test]
fn first_tries_are_answered_as_the_file_says() {
    let mut tries = read();
    let wanted = written(&tries);
    for one in &mut tries {
        one.answer = one.answer_to(&one.text);
    }
    let found = written(&tries);
    if std::env::var_os("CEMBRA_REWRITE").is_some() {
        std::fs::write(root().join("tests/first_tries.toml"), &found).expect("the file is written");
        std::fs::write(root().join(PAGE), page(&tries)).expect("the page is written");
    } else {
        let differing = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
        assert!(found == wanted, "answers differ: {differing:?}; run this test with CEMBRA_REWRITE=1");
        let found = std::fs::read_to_string(root().join(PAGE)).unwrap_or_default();
        assert!(found == page(&tries), "{PAGE} is out of date: run this test with CEMBRA_REWRITE=1");
    }
    // Each is a model, or is told what to write.
    let silent: Vec<&str> = tries
        .iter()
        .filter(|one| one.answer.as_ref().is_some_and(|answer| answer.hints.is_empty()))
        .map(|one| &*one.text)
        .collect();
    assert!(silent.is_empty(), "without a hint: {silent:#?}");
}

#[test]
fn what_hints_say_to_write_is_compiled() {
    let tries = read();
    let wrong: Vec<String> = tries
        .iter()
        .filter_map(|one| {
            let wrong = one.wrong_code();
            (!wrong.is_empty()).then(|| format!("{}: {wrong:?}", one.text))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_foreign_name_is_tried() {
    let tries = read();
    let mut wrong = BTreeSet::new();
    for entry in foreign_names() {
        let told = |one: &&Try| {
            (one.tensors || entry.used_as != ForeignUse::Tensors) && Try::is_told(one.answer.as_ref(), entry)
        };
        let named =
            |one: &Try| entry.names.iter().copied().find(|name| one.with_name(entry.used_as, name, name).is_some());
        let found = tries.iter().filter(told).find_map(|one| Some((one, named(one)?)));
        // Of signs that are known by where they stand there is but one name.
        let is_alone = entry.names.len() == 1 && tries.iter().any(|one| told(&one));
        let Some((one, name)) = found else {
            if !is_alone {
                wrong.insert(format!("no try of {:?} {:?}", entry.used_as, entry.names));
            }
            continue;
        };
        for other in entry.names {
            let text = one.with_name(entry.used_as, name, other).unwrap_or_default();
            let answer = one.answer_to(&text);
            if !Try::is_told(answer.as_ref(), entry) {
                wrong.insert(format!("{text}: {:?}", answer.map(|answer| answer.hints)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_comparison_becomes_a_bool_of_rust_as_the_error_says() {
    let run = |text: &str| Model::parse(text)?.executor::<(), bool>(&Options::default())?.run(&());
    let error = run("output big = 3 > 2").expect_err("a mask is no `bool`");
    assert_eq!(
        error.to_string(),
        "output `big` is unit?, but the result's type is bool; declare `output big: bool = ..`, or use a `cembra::Mask`: a comparison gives a mask"
    );
    assert_eq!(
        ["output big: bool = 3 > 2", "output big: bool = 2 > 3"].map(|text| run(text).ok()),
        [Some(true), Some(false)]
    );
    let mut masked = Model::parse("output big = 3 > 2")
        .and_then(|model| model.executor::<(), cembra::Mask>(&Options::default()))
        .expect("a mask is one");
    assert!(masked.run(&()).expect("a value").0);
    // A default of a mask is no way: it says where the type is declared.
    let error = run("output big = (3 > 2) ?? false").expect_err("no common type").to_string();
    assert!(
        error.ends_with(
            "write `let big: bool = x > 1.0` to make a boolean of a mask, or `b == true` to make a mask of a boolean"
        ),
        "{error}"
    );
}
