//! The spans of compiling, heard by a small subscriber: cargo test -p cembra --features tracing --test spans.

use cembra::{Backend, Model, Options, Tier};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A span's name and fields, and whether it was entered and left.
#[derive(Clone, Default, Debug)]
struct Heard {
    name: String,
    fields: BTreeMap<String, String>,
    entered: usize,
    left: usize,
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Heard>>>);

struct Fields<'h>(&'h mut Heard);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.fields.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Ear {
    fn with(&self, id: &Id, change: impl FnOnce(&mut Heard)) {
        change(&mut self.0.lock().expect("spans")[id.into_u64() as usize - 1]);
    }
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cembra"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut spans = self.0.lock().expect("spans");
        let mut heard = Heard { name: span.metadata().name().to_owned(), ..Heard::default() };
        span.record(&mut Fields(&mut heard));
        spans.push(heard);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.with(span, |heard| values.record(&mut Fields(heard)));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.with(span, |heard| heard.entered += 1);
    }

    fn exit(&self, span: &Id) {
        self.with(span, |heard| heard.left += 1);
    }
}

#[test]
fn each_stage_has_a_span_with_its_sizes() {
    let ear = Ear::default();
    let model = Model::parse("input x: f64; sqrt(x) + x * 2.0").unwrap();
    let executor = tracing::subscriber::with_default(ear.clone(), || {
        let options = Options::default().name("root").backend(Backend::Native).tier(Tier::Quick);
        model.compile(&options).unwrap()
    });
    let heard = ear.0.lock().unwrap().clone();
    let names: Vec<&str> = heard.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["prepare", "plan", "compile"]);
    for span in &heard {
        assert_eq!((span.entered, span.left), (1, 1), "{span:?}");
        assert_eq!(span.fields["model"], "\"root\"");
    }
    let [prepare, lower, compile] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(prepare.fields["nodes"], model.program().graph.len().to_string());
    assert_eq!(prepare.fields["prepared_nodes"], lower.fields["nodes"]);
    // A root, a product and a sum.
    assert_eq!((lower.fields["steps"].as_str(), compile.fields["steps"].as_str()), ("3", "3"));
    assert_eq!(compile.fields["tier"], "\"quick\"");
    assert!(compile.fields["code_bytes"].parse::<usize>().unwrap() > 0);
    drop(executor);
}
