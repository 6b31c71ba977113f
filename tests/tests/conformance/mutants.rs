//! The texts of the suites, changed a little at random: whatever they still mean, printing reads back, and the backends
//! agree on it, in refusals, results and errors. Hand-written models are nearer to where the language is dense than
//! generated ones.

use cembra::Model;
use std::path::Path;

/// The models of all cases, as tokens; inputs are declared where the case does it outside of the model.
fn corpus() -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the suites").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let mut corpus = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a text");
        let file: toml::Table = toml::from_str(&text).expect("TOML");
        for case in file["case"].as_array().expect("cases") {
            let model = case.get("expr").or(case.get("model")).and_then(toml::Value::as_str).expect("a model");
            let mut text = String::new();
            let inputs = case.get("in").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
            for input in inputs.iter().filter_map(toml::Value::as_str).filter(|_| !model.contains("input ")) {
                text.push_str(&format!("input {input}\n"));
            }
            text.push_str(model);
            corpus.push(tokens(&text));
        }
    }
    // What a text says of the host's operators may be wrong, which the registry's typing does not look into.
    corpus.retain(|tokens| !tokens.is_empty() && !tokens.iter().any(|token| token == "extern"));
    corpus
}

/// Words and single characters.
fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut in_word = false;
    for c in text.chars() {
        let word = c.is_alphanumeric() || c == '_';
        match found.last_mut().filter(|_| word && in_word) {
            Some(last) => last.push(c),
            None => found.push(c.to_string()),
        }
        in_word = word;
    }
    found
}

fn mutant(random: &mut fastrand::Rng, corpus: &[Vec<String>]) -> String {
    let any = |random: &mut fastrand::Rng| random.usize(..corpus.len());
    let mut tokens = corpus[any(random)].clone();
    for _ in 0..random.usize(1..4) {
        if tokens.is_empty() {
            break;
        }
        let at = random.usize(..tokens.len());
        let other = &corpus[any(random)];
        let token = random.usize(..other.len());
        match random.u8(..6) {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[at].clone()),
            2 => tokens[at].clone_from(&other[token]),
            3 => tokens.insert(at, other[token].clone()),
            4 => {
                let to = random.usize(..tokens.len());
                tokens.swap(at, to);
            }
            _ => {
                let end = random.usize(token..=other.len().min(token + 12));
                tokens.splice(at..at, other[token..end].to_vec());
            }
        }
    }
    tokens.concat()
}

#[test]
fn changed_models_mean_the_same_to_all_backends() {
    changed_models(2_500);
}

#[test]
#[ignore = "takes 15 s without optimisation: `.ci/release` runs it"]
fn many_changed_models_mean_the_same_to_all_backends() {
    changed_models(8_000);
}

fn changed_models(count: usize) {
    let corpus = corpus();
    assert!(corpus.len() > 300, "{} models", corpus.len());
    let mut random = fastrand::Rng::with_seed(3);
    let mut readable = 0;
    for _ in 0..count {
        let text = mutant(&mut random, &corpus);
        readable += usize::from(Model::parse(&text).is_ok());
        if let Some(mismatch) = cembra_fuzzing::try_text(&text) {
            panic!("{text}\n\n{mismatch}");
        }
    }
    // Not so much is changed that nothing is left to compare.
    assert!(8 * readable > count, "{readable} of {count}");
}
