//! What a formatted text is: the same model, with the same comments, and its own layout. Of all models of the repository, and of
//! models at random in layouts at random.

mod scramble;

use cembra::errors::Code;
use cembra::operators::Registry;
use cembra::program::{Folder, Program, Sources, UsedFile, format};
use cembra::{Limits, Model};
use cembra_expr::{Expected, ModelTest, TestCase, TestValue};
use cembra_fuzzing::Config;
use scramble::scrambled;
use serde::Deserialize;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files below a folder whose names end like this.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a text")
}

fn formatted(text: &str) -> String {
    let format = |text: &str| format(text, Registry::standard(), &Limits::default());
    let made = format(text).unwrap_or_else(|problems| panic!("{text}\n{problems}"));
    let again = format(&made).unwrap_or_else(|problems| panic!("{made}\n{problems}"));
    assert!(made == again, "of\n{text}\nthe layout\n{made}\nhas the layout\n{again}");
    made
}

/// The tests of a model, but for where they are.
fn told(tests: &[ModelTest]) -> Vec<String> {
    let values = |values: &[TestValue]| {
        values.iter().map(|value| format!("{} = {:?}", value.name, value.literal)).collect::<Vec<_>>()
    };
    let case = |case: &TestCase| match &case.expected {
        Expected::Outputs(outputs) => format!("{:?} {:?}", values(&case.inputs), values(outputs)),
        Expected::Error(code) => format!("{:?} {code}", values(&case.inputs)),
    };
    tests
        .iter()
        .map(|test| format!("{} {:?} {:?}", test.name, test.within, test.cases.iter().map(case).collect::<Vec<_>>()))
        .collect()
}

/// A program, how it is printed and its tests.
type Meaning = (Program, String, Vec<String>);

/// What a text means, or which problems it has.
fn meaning(text: &str) -> Result<Meaning, Vec<String>> {
    meaning_of(Sources::alone("", text))
}

/// What the text of a file means, with the files that it uses, or which problems it has.
fn meaning_in(file: &Path, text: &str) -> Result<Meaning, Vec<String>> {
    let limits = Limits::default();
    let folder = Folder::new(file.parent().expect("a folder"), limits.source_bytes);
    meaning_of(Sources::gather(&file.display().to_string(), text, &limits, &folder))
}

fn meaning_of(sources: Sources) -> Result<Meaning, Vec<String>> {
    match Model::parse_sources(sources, Registry::standard(), &Limits::default()) {
        Ok(model) => {
            let program = model.program();
            Ok((program.clone(), cembra::explain::print(program), told(&program.tests)))
        }
        Err(error) => Err(error.diagnostics().iter().map(|problem| problem.code().to_string()).collect()),
    }
}

/// The comments of a text, without what a formatter drops of them.
fn comments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines().flat_map(|line| line.split('\r')) {
        let mut quote = None;
        let mut escaped = false;
        for (at, c) in line.char_indices() {
            match quote {
                None if c == '#' => {
                    found.push(line[at..].trim_end_matches([' ', '\t']));
                    break;
                }
                None if matches!(c, '"' | '\'') => quote = Some(c),
                Some(open) if c == open && !escaped => quote = None,
                _ => {}
            }
            escaped = c == '\\' && !escaped && quote.is_some();
        }
    }
    found
}

/// The text without what separates its tokens, and without comments.
fn squeezed(text: &str) -> String {
    let lines = text.lines().flat_map(|line| line.split('\r'));
    let code =
        lines.map(|line| comments(line).first().map_or(line, |comment| &line[..line.rfind(comment).unwrap_or(0)]));
    code.flat_map(str::chars).filter(|c| !c.is_whitespace() && !matches!(c, ';' | '\u{FEFF}')).collect()
}

/// The text in its layout, of which is known then that nothing is lost.
fn checked(text: &str) -> String {
    let made = formatted(text);
    assert!(
        meaning(text) == meaning(&made),
        "of\n{text}\nthe layout\n{made}\nis another model: {:?} and {:?}",
        meaning(text).err(),
        meaning(&made).err()
    );
    assert_eq!(comments(text), comments(&made), "of\n{text}");
    assert_eq!(squeezed(text), squeezed(&made), "of\n{text}");
    assert!(made.lines().all(|line| !line.ends_with([' ', '\t'])), "of\n{text}");
    assert!(!made.contains("\n\n\n") && !made.starts_with('\n') && !made.ends_with("\n\n"), "of\n{text}");
    made
}

#[test]
fn models_of_the_repository_stay_what_they_are() {
    let files = [files("docs", "cem"), files("benches", "cem")].concat();
    assert!(files.len() >= 20, "{} files", files.len());
    for file in &files {
        let text = read(file);
        let (before, after) = (meaning_in(file, &text), meaning_in(file, &checked(&text)));
        assert!(before == after, "{}", file.display());
        // What others use has no output, and is no model by itself.
        let is_part = before.as_ref().is_err_and(|codes| *codes == [Code::NoOutput.as_str()]);
        assert!(before.is_ok() || is_part, "{}", file.display());
    }
}

#[test]
fn examples_have_the_layout_of_the_formatter() {
    for file in files("docs", "cem") {
        let text = read(&file);
        assert!(formatted(&text) == text, "`cembra fmt {}` changes it", file.display());
    }
}

#[test]
fn models_of_the_documents_stay_what_they_are() {
    let mut blocks = 0;
    for file in files("docs", "md") {
        for block in read(&file).split("```cem\n").skip(1) {
            let block = block.split("```").next().expect("a block");
            // Some show what cannot be read.
            if format(block, Registry::standard(), &Limits::default()).is_ok() {
                checked(block);
                blocks += 1;
            }
        }
    }
    assert!(blocks > 40, "{blocks} blocks");
}

#[test]
fn the_page_of_formatting_shows_what_is_done() {
    let page = read(&root().join("docs/formatting.md"));
    let block = |kind: &str| {
        page.split_once(&format!("```{kind}\n")).and_then(|(_, rest)| rest.split("```").next()).expect("a block")
    };
    assert_eq!(checked(block("text")), block("cem"));
    assert!(meaning(block("cem")).is_ok());
}

#[derive(Deserialize)]
struct Suite {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    model: Option<String>,
    expr: Option<String>,
}

/// The models of the suites.
fn suites() -> Vec<String> {
    let suites =
        files("tests/suite", "toml").into_iter().map(|file| toml::from_str::<Suite>(&read(&file)).expect("a suite"));
    suites.flat_map(|suite| suite.case).map(|case| case.model.or(case.expr).expect("a model")).collect()
}

#[test]
fn models_of_the_suite_stay_what_they_are() {
    let texts = suites();
    let is_read = |text: &&String| format(text, Registry::standard(), &Limits::default()).is_ok();
    let read: Vec<&String> = texts.iter().filter(is_read).collect();
    assert!(texts.len() > 300 && read.len() * 10 > texts.len() * 9, "{} of {}", read.len(), texts.len());
    for text in read {
        checked(text);
    }
}

/// Most of what is damaged is refused; what is not is laid out, whatever is wrong with it.
#[test]
fn damaged_texts_are_refused_or_stay_what_they_are() {
    damaged_texts(10_000);
}

#[test]
#[ignore = "takes 10 s without optimisation: `.ci/release` runs it"]
fn many_damaged_texts_are_refused_or_stay_what_they_are() {
    damaged_texts(30_000);
}

fn damaged_texts(count: usize) {
    const PIECES: &[&str] = &[
        "\n",
        "\n",
        " ",
        "\n# c\n",
        ";",
        ";\n",
        ",",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "-",
        "+",
        "in",
        " in ",
        "let t = 1 in ",
        "if ",
        " then ",
        " else ",
        " not ",
        ".",
        "..",
        "?",
        ":",
        "=",
        " = ",
        "f32",
        "date",
        "dict",
        "\"a\"",
        "1",
        "x",
        "\ntest \"t\" {",
        " => ",
        "\nfn(x) = x",
        "\nlet ",
        "\nuse \"a\"\n",
        "\ntable t: text -> f64 = 't'",
        "\nextern fn a.b(): f64",
        "{x: ",
        "\u{FEFF}",
    ];
    let mut random = fastrand::Rng::with_seed(14);
    let mut texts = suites();
    texts.extend(STATEMENTS.iter().map(|text| (*text).to_owned()));
    texts.extend((0..100).map(|_| table(&mut random)));
    let mut read = 0;
    for at in 0..count {
        let mut text = texts[at % texts.len()].clone();
        for _ in 0..random.usize(1..4) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let from = random.usize(..places.len());
            let to = (from + random.usize(..3)).min(places.len() - 1);
            text.replace_range(places[from]..places[to], PIECES[random.usize(..PIECES.len())]);
        }
        if format(&text, Registry::standard(), &Limits::default()).is_ok() {
            checked(&text);
            read += 1;
        }
    }
    assert!(read * 20 > count, "{read} of {count}");
}

#[test]
fn examples_of_operators_stay_what_they_are() {
    for (_, def) in Registry::standard().iter() {
        for example in def.examples {
            checked(example.text);
        }
    }
}

#[test]
fn files_that_a_text_uses_stay_used() {
    let files = |name: &str, _: &str| match name {
        "tax.cem" => Ok(UsedFile { name: name.to_owned(), text: "let vat=0.5;fn taxed( x )=x*(1.0+vat)".into() }),
        "vat.csv" => Ok(UsedFile { name: name.to_owned(), text: "country,vat\nCH,1.08\n".into() }),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    let text =
        "use'tax.cem' # the tax\ntable rates:text- >f64='vat.csv';input c : text\ntaxed(lookup(c,rates,{x:1.0}\n.x))";
    let of = |text: &str| {
        let limits = Limits::default();
        let sources = Sources::gather("m.cem", text, &limits, &files);
        Model::parse_sources(sources, Registry::standard(), &limits).expect("a model").program().clone()
    };
    let made = formatted(text);
    assert_eq!(of(&made), of(text));
    let expected = "use 'tax.cem'  # the tax\ntable rates: text -> f64 = 'vat.csv'\ninput c: text\ntaxed(lookup(c, rates, {x: 1.0}.x))\n";
    assert_eq!(made, expected);
}

/// Statements that the generator does not draw, some of which stand before its programs.
const STATEMENTS: &[&str] = &[
    "fn zf(x, y: f64?): f64? = if has(y) then y else let zt = x in zt * zt",
    "let zm = 5 in [1, 2, -3]",
    "let zr = (4 not in -3..7) and true",
    "extern fn zx.rate(text, text?): f64?",
    "input zi: {a: (f64, text?), if: i64}, \"z j\": f64? = -30",
    "let zd = lookup(7, {1: 1.08, 2: NA_OR_NOT}, 1.0)",
    "let zk = [1, -2.5, missing]",
    "let zl = array.at([1, 2, 3], 1) + [1, 2][0]",
    "let zs = seq.reduce(fn(a, b) = a + b, seq.range(3), 0)",
    "let zw = 1 + (let zv = 2 in (if zv > 1 then zv else if zv < 0 then -zv else 0 - zv))",
    "test \"za\" within 1e-9 {} => error \"div-by-zero\"",
    "test \"zb\" { zi = {a: (1.5, missing), if: -2}, \"z j\" = 3 } => { zk = [1, 2] }",
];

/// A table, whose lines count, in a layout of its own. Names in it are those of nothing.
fn table(random: &mut fastrand::Rng) -> String {
    const CELLS: &[&str] = &[
        "1",
        "- 2.5",
        "missing[f64]",
        "\"a b\"",
        "[1,\n-2]",
        "(\n1, 2)",
        "{x:1,y :(2,\n3 )}",
        "date{2026-11-20}",
        "[\n]",
        "'wide enough to be no cell of a column'",
    ];
    const BLANKS: &[&str] = &["", " ", "", "   ", "\t", "", "\n", " # c\n", "\r\n  # d\n\n"];
    let blank = |random: &mut fastrand::Rng| {
        let choices = if random.u8(..3) == 0 { BLANKS.len() } else { 6 };
        BLANKS[random.usize(..choices)]
    };
    let row = |random: &mut fastrand::Rng, counts: [usize; 2], cell: &dyn Fn(&mut fastrand::Rng) -> String| {
        let mut out = String::new();
        for (side, count) in counts.into_iter().enumerate() {
            for at in 0..count {
                let comma = if at > 0 { [blank(random), ","].concat() } else { String::new() };
                out += &[comma.as_str(), blank(random), &cell(random)].concat();
            }
            out += if side == 0 { blank(random) } else { "" };
            out += if side == 0 { "=>" } else { "" };
        }
        out
    };
    let counts = [random.usize(..4), random.usize(1..4)];
    let mut out = "test \"zt\" {".to_owned();
    out += &row(random, counts, &|random| {
        ["n", "long_name_", "m"][random.usize(..3)].to_owned() + &random.u32(..).to_string()
    });
    for _ in 0..random.usize(..5) {
        let ends = [";", "\n", "\n\n\n", " # e\n", ";;\n", "\n# f\n", " ; # g\n"];
        out += ends[random.usize(..ends.len())];
        out += &row(random, counts, &|random| CELLS[random.usize(..CELLS.len())].to_owned());
    }
    out + ["}", "\n}", ";\n}", "# h\n}"][random.usize(..4)]
}

#[test]
fn models_at_random_in_layouts_at_random_stay_what_they_are() {
    models_at_random(250);
}

#[test]
#[ignore = "takes 10 s without optimisation: `.ci/release` runs it"]
fn many_models_at_random_in_layouts_at_random_stay_what_they_are() {
    models_at_random(800);
}

fn models_at_random(count: u64) {
    let config = Config { seed: 14, ..Config::default() };
    for number in 0..count {
        let mut random = fastrand::Rng::with_seed(number);
        let mut text = cembra::explain::print(&cembra_fuzzing::program(&config, number));
        for statement in STATEMENTS {
            if random.u8(..8) > 0 {
                continue;
            }
            text = format!("{}\n{text}", statement.replace("NA_OR_NOT", ["missing", "2.0"][random.usize(..2)]));
        }
        let (mut laid, mut inserted) = scrambled(&text, &mut random);
        assert!(
            meaning(&laid) == meaning(&text),
            "the layout of program {number} is not one of\n{text}\nbut\n{laid}\n{:?}",
            meaning(&laid).err()
        );
        if random.u8(..4) == 0 {
            let table = table(&mut random);
            laid =
                format!("{table}{}{}", [";", "\n", "\r\n\n"][random.usize(..3)], laid.trim_start_matches('\u{FEFF}'));
            inserted.splice(0..0, comments(&table).into_iter().map(str::to_owned));
        }
        if random.u8(..8) == 0 {
            // Nothing but the `;` keeps this from going on with the statement before it.
            laid += [";\n-1 ** 2", "; +x0", ";;\n\n- 2"][random.usize(..3)];
        }
        let made = checked(&laid);
        let kept: Vec<&str> = inserted.iter().map(|comment| comment.trim_end_matches([' ', '\t'])).collect();
        assert_eq!(comments(&made), kept, "program {number}");
    }
}
