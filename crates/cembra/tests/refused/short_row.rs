//! Must not compile: rows with a short lifetime for an executor whose loader reads `'static` rows, because the loader
//! may keep what it reads; and a result that outlives its row.

use cembra::loaders::{AccessorsListener, AccessorsLoader, Fields, LoaderRow};
use cembra::{Model, ModelExecutor, Options, QType, ValueRef};
use std::sync::Mutex;

#[derive(cembra::Input)]
struct Row<'r> {
    name: &'r str,
}

static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

fn kept_by_a_loader() {
    let loader = AccessorsLoader::new().with("name", QType::TEXT, |row: &Row<'static>| {
        KEPT.lock().unwrap().push(row.name);
        row.name.into()
    });
    let model = Model::parse("strings.upper(name)").unwrap();
    let mut upper = model.executor_from::<Row<'static>, String>(&loader, &Options::default()).unwrap();
    let name = String::from("ann");
    upper.run(&Row { name: &name }).unwrap();
}

fn shortened<'r>(run: ModelExecutor<LoaderRow<Row<'static>>, String>) -> ModelExecutor<LoaderRow<Row<'r>>, String> {
    run
}

fn kept_by_a_listener() {
    let listener = AccessorsListener::new().others(|heard: &mut Vec<ValueRef<'static>>, _, value| heard.push(value));
    let model = Model::parse("input name: text; output y = 1.0; output z = name").unwrap();
    let loader = Fields::<Row<'_>>::new();
    let mut run = model.executor_between::<_, f64, _>(&loader, &listener, &Options::default()).unwrap();
    let mut heard = Vec::new();
    run.listen(&Row { name: &String::from("ann") }, &mut heard).unwrap();
    println!("{heard:?}");
}

fn main() {
    kept_by_a_loader();
    kept_by_a_listener();
    let _ = shortened;
}
