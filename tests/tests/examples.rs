//! Every operator's examples: the expressions its record shows give the values it shows, in both backends, with all
//! passes and without those that compute or rewrite.

use cembra::{Backend, Model, Options, Registry};

fn printed(text: &str, options: &Options) -> String {
    let executor = match Model::parse(text).and_then(|model| model.compile(options)) {
        Ok(executor) => executor,
        Err(error) => return format!("refused: {error}"),
    };
    match executor.session().evaluate(&[]) {
        Ok(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Err(error) => format!("failed: {error}"),
    }
}

#[test]
fn examples_give_the_values_they_show() {
    let mut wrong = Vec::new();
    for (_, def) in Registry::standard().iter() {
        assert!(!def.examples.is_empty(), "{} has no example", def.name);
        for example in def.examples {
            for backend in [Backend::Interpreter, Backend::Native] {
                for without in [&[][..], &["fold"], &["optimise"], &["fold", "optimise"]] {
                    // An example may export another output beside its value.
                    let options = Options::default().backend(backend).keep_weak_outputs(true).outputs(["result"]);
                    let options = without.iter().fold(options, |options, pass| options.without_pass(pass));
                    let found = printed(example.text, &options);
                    if found != example.value {
                        let (name, text, value) = (def.name, example.text, example.value);
                        wrong.push(format!(
                            "{name}: `{text}` gives `{found}` instead of `{value}` ({}, without {without:?})",
                            backend.name()
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
