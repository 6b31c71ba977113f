//! Warnings: what the models of `warnings/told.toml` are told of and where, that those of `warnings/quiet.toml` are told of
//! nothing, and that looking for warnings takes time that is linear in a model.

use cembra::errors::{Code, Warnings};
use cembra::values::parse_type;
use cembra::{Limits, Model, Options};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    model: String,
    #[serde(default)]
    types: BTreeMap<String, String>,
    #[serde(default)]
    told: Vec<String>,
    #[serde(default)]
    says: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    #[serde(default)]
    files: Vec<String>,
    case: Vec<Case>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(root().join("tests/warnings").join(name)).expect("a file of cases");
    toml::from_str(&text).expect("cases")
}

fn options(types: &BTreeMap<String, String>) -> Options {
    types
        .iter()
        .fold(Options::default(), |options, (name, qtype)| options.input_type(name, parse_type(qtype).expect("a type")))
}

/// Each warning as its code and the text it points at.
fn listed(warnings: &Warnings, source: &str) -> Vec<String> {
    let list = warnings.as_slice().iter();
    list.map(|one| format!("{}: {}", one.code(), one.span().map_or("", |span| span.text(source)))).collect()
}

#[test]
fn what_was_probably_not_meant_is_told() {
    let cases: Cases = read("told.toml");
    let mut wrong = Vec::new();
    let mut codes = BTreeSet::new();
    for case in &cases.case {
        let model = Model::parse(&case.model).unwrap_or_else(|error| panic!("{}\n{error}", case.model));
        let warnings = model.warnings(&options(&case.types));
        let found = listed(&warnings, &case.model);
        let said: String = warnings.as_slice().iter().map(|one| format!("{one} {:?}\n", one.others())).collect();
        if found != case.told || !said.contains(&case.says) {
            wrong.push(format!("{}\n  told: {found:#?}\n  said: {said}", case.model));
        }
        codes.extend(warnings.as_slice().iter().map(|one| one.code().as_str()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Tests of a model are looked at by `check` alone.
    let of_models = Code::WARNINGS.iter().filter(|code| **code != Code::UnfitTest);
    assert_eq!(codes, of_models.map(|code| code.as_str()).collect());
    let told = cases.case.iter().filter(|case| !case.told.is_empty()).count();
    assert!(told >= 40, "only {told} models");
}

#[test]
fn good_models_are_told_of_nothing() {
    let mut cases: Cases = read("quiet.toml");
    for file in &cases.files {
        let model = std::fs::read_to_string(root().join(file)).expect("a model");
        cases.case.push(Case { model, types: BTreeMap::new(), told: Vec::new(), says: String::new() });
    }
    let mut wrong = Vec::new();
    for case in &cases.case {
        let options = options(&case.types);
        let model = Model::parse(&case.model).unwrap_or_else(|error| panic!("{}\n{error}", case.model));
        // With an error, little would be looked at.
        if let Err(error) = model.signature(&options) {
            panic!("{}\n{error}", case.model);
        }
        let found = listed(&model.warnings(&options), &case.model);
        if !found.is_empty() {
            wrong.push(format!("{}\n  told: {found:#?}", case.model));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.case.len() >= 40, "only {} models", cases.case.len());
}

#[test]
fn very_many_warnings_are_counted_and_not_kept() {
    let lets: String = (0..1000).map(|n| format!("let unused{n} = x\n")).collect();
    let source = format!("numbers f32\ninput x: i64\n{lets}x * 0.5");
    let model = Model::parse(&source).expect("a model");
    let warnings = model.warnings(&Options::default());
    assert_eq!((warnings.as_slice().len(), warnings.count()), (100, 1001));
    let few = Options::default().limits(Limits::default().problems(2));
    assert_eq!(listed(&model.warnings(&few), &source), ["unused-let: unused0", "unused-let: unused1"]);
    // What is silenced takes no room.
    let allowed = model.warnings(&Options::default().allow(Code::UnusedLet));
    assert_eq!((listed(&allowed, &source), allowed.count()), (vec!["lost-digits: x * 0.5".to_owned()], 1));
}

/// Files do not say where functions are, and what one call makes would be taken for all.
#[test]
fn models_of_files_are_told_of_nothing() {
    let source = "fn f(v, a, b) = if v == a then 1 else if v == b then 2 else 3\ninput x: i64?\nf(x, 1, 1) + f(missing[i64], 1, 2)";
    for source in [source, "input x: i64?\nif x == missing then 1.0 else x * 0.5"] {
        let model = Model::parse(source).expect("a model");
        let again = Model::from_binary(&model.to_binary()).expect("the model");
        assert!(again.warnings(&Options::default()).is_empty(), "{source}");
    }
}

/// A model in which everything that a warning looks for is there very often: chains of conditions that share their ends, names
/// like many others, comparisons of one `missing`.
#[test]
fn large_models_are_looked_at_in_bounded_time() {
    let declared: String = (0..20_000).map(|n| format!("input name_of_input_{}: f64\n", letters(n))).collect();
    let leaves: String = (0..20_000).map(|n| format!(" + nam_of_input_{}", letters(n))).collect();
    let mut chain = "0.0".to_owned();
    let mut lets = String::new();
    for n in 0..20_000 {
        lets.push_str(&format!("let z{n} = if x == missing then {n}.0 else {chain}\n"));
        chain = format!("z{n}");
    }
    let source = format!("{declared}input x: f64?\n{lets}output y = {chain}{leaves}");
    let model = Model::parse(&source).expect("a model");
    let warnings = model.warnings(&Options::default());
    // One comparison is written 20,000 times; of each leaf's name something is known unless it is compared with too many.
    assert!(warnings.as_slice().iter().any(|one| one.code() == Code::SimilarName));
    assert!(warnings.count() < 40_000);
}

/// A number in letters, so that no digits tell names apart.
fn letters(mut number: usize) -> String {
    let mut text = String::new();
    for _ in 0..5 {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    text
}
