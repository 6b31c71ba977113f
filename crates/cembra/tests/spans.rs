//! Tests the tracing spans of compilation, which a small subscriber records. Run with
//! `cargo test -p cembra --features tracing --test spans`.

use cembra::columns::InputColumn;
use cembra::native::Tier;
use cembra::{Backend, Model, Options, Value};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A recorded span: its name, its fields, and how often it was entered and left.
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

#[test]
fn a_model_on_demand_is_prepared_once_for_columns_and_for_rows() {
    let ear = Ear::default();
    let model = Model::parse("input x: f64, y: f64? = 0.5; sqrt(x) * y").unwrap();
    let made = tracing::subscriber::with_default(ear.clone(), || {
        let executor = model.compile_on_demand(&Options::default()).unwrap();
        let x = [4.0, 9.0];
        let y = Value::Missing(cembra::Scalar::Float64);
        let columns = [InputColumn::values(&x), InputColumn::shared(&y)];
        let rows = executor.batch().unwrap().run(&columns).unwrap();
        assert_eq!(rows[0].values::<f64>(), Some(&[1.0, 1.5][..]));
        let before = ear.0.lock().unwrap().len();
        (before, executor.session().evaluate(&[Value::from(16.0)]).unwrap())
    });
    assert_eq!(made.1, [Value::from(2.0)]);
    let heard = ear.0.lock().unwrap().clone();
    let names: Vec<&str> = heard.iter().map(|span| span.name.as_str()).collect();
    // The first code that is made is the code for columns.
    assert_eq!(names[..2], ["prepare", "plan"]);
    assert!(names[2..].iter().all(|name| *name == "compile") && names.len() == made.0 + 1, "{names:?}");
}
