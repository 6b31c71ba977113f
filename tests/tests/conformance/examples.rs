//! Every operator's examples: the expressions its record shows give the values it shows, in all backends and tiers, with all
//! passes and without those that compute or rewrite.

use cembra::operators::Registry;
use cembra::{Backend, Model, Options};
use cembra_tests::backend::{BACKENDS, in_each_tier, on};

/// What is printed, in each tier.
fn printed(text: &str, options: &Options) -> Vec<String> {
    let executor = match Model::parse(text).and_then(|model| model.compile(options)) {
        Ok(executor) => executor,
        Err(error) => return vec![format!("refused: {error}")],
    };
    let mut session = executor.session();
    in_each_tier(&executor, || match session.evaluate(&[]) {
        Ok(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Err(error) => format!("failed: {error}"),
    })
}

#[test]
fn examples_give_the_values_they_show() {
    let (mut wrong, mut number, mut in_tiers) = (Vec::new(), 0, 0);
    for (_, def) in Registry::standard().iter() {
        assert!(!def.examples.is_empty(), "{} has no example", def.name);
        for example in def.examples {
            number += 1;
            for (at, backend) in BACKENDS.into_iter().enumerate() {
                for (which, without) in
                    [&[][..], &["fold"], &["optimise"], &["fold", "optimise"]].into_iter().enumerate()
                {
                    // With tiers each example is run in each of them; of all else a third, so that each pass is left out once, and each
                    // backend leaves one out.
                    let is_in_tiers = backend == Backend::Tiered && without.is_empty();
                    if !is_in_tiers && (number + at + which) % BACKENDS.len() != 0 {
                        continue;
                    }
                    // An example may export another output beside its value.
                    let options = on(backend, Options::default()).keep_weak_outputs(true).outputs(["result"]);
                    let options = without.iter().fold(options, |options, pass| options.without_pass(pass));
                    let found = printed(example.text, &options);
                    // Models with arrays have no tiers.
                    let has_tiers = backend == Backend::Tiered && found.len() == 3;
                    in_tiers += usize::from(has_tiers);
                    if found != vec![example.value; if has_tiers { 3 } else { 1 }] {
                        let (name, text, value) = (def.name, example.text, example.value);
                        wrong.push(format!(
                            "{name}: `{text}` gives {found:?} instead of `{value}` ({}, without {without:?})",
                            backend.name()
                        ));
                    }
                }
            }
        }
    }
    assert!(in_tiers > 500, "{in_tiers}");
    assert!(wrong.is_empty(), "{} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
