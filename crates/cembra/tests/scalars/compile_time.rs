//! Tests that the limit on compile time holds for every function that makes an executor, a listing or a file from a
//! model.

use cembra::explain::Stage;
use cembra::json::Json;
use cembra::loaders::{AccessorsListener, AccessorsLoader};
use cembra::native::{CodeCache, Target, Tiering};
use cembra::{Backend, Error, Limits, Model, Options, QType};
use std::time::Duration;

#[derive(cembra::Input)]
struct Row {
    x: f64,
}

/// Returns the result of each function that compiles a model, with the function's name.
fn ways(model: &Model, options: &Options) -> Vec<(String, Result<(), Error>)> {
    let loader = AccessorsLoader::new().with("x", QType::FLOAT64, |row: &Row| row.x.into());
    let listener = AccessorsListener::new().others(|_: &mut (), _, _| {});
    let folder = tempfile::tempdir().expect("a folder");
    let cache = CodeCache::open(folder.path().join("code")).expect("a cache");
    let cached = options.clone().code_cache(cache);
    let mut ways = vec![
        ("signature".to_owned(), model.signature(options).map(drop)),
        ("machine".to_owned(), model.machine(options).map(drop)),
        ("object".to_owned(), model.object("line", &Target::host(), options).map(drop)),
    ];
    // What is printed as it was read takes no time to compile.
    for stage in Stage::ALL.into_iter().filter(|stage| *stage != Stage::Expr) {
        ways.push((format!("explain {}", stage.name()), model.explain(options, stage).map(drop)));
    }
    for backend in [Backend::Interpreter, Backend::Native, Backend::Auto, Backend::Tiered] {
        for (kind, options) in [("", options), ("cached ", &cached)] {
            let options = &options.clone().backend(backend).tiering(Tiering::default().after_calls(0));
            let casts = &options.clone().cast_outputs(true);
            let mut add = |way: &str, outcome| ways.push((format!("{kind}{} {way}", backend.name()), outcome));
            add("compile", model.compile(options).map(drop));
            add("executor", model.executor::<Row, f64>(options).map(drop));
            add("executor with casts", model.executor::<Row, f32>(casts).map(drop));
            add("executor_from", model.executor_from::<Row, f64>(&loader, options).map(drop));
            add("executor_between", model.executor_between::<Row, f64, ()>(&loader, &listener, options).map(drop));
            add("json", model.executor_between::<_, (), _>(&Json, &Json, options).map(drop));
        }
    }
    ways
}

fn within(compile_time: Duration) -> Options {
    Options::default().limits(Limits::default().compile_time(compile_time))
}

#[test]
fn no_way_goes_around_the_limit() {
    let model = Model::parse("input x: f64; x * 2.0 + 1.0").expect("a model");
    for (way, outcome) in ways(&model, &within(Duration::from_secs(3600))) {
        assert!(outcome.is_ok(), "{way}: {outcome:?}");
    }
    for (way, outcome) in ways(&model, &within(Duration::ZERO)) {
        let Err(error) = outcome else { panic!("{way} went around it") };
        assert_eq!(error.code(), "limit", "{way}: {error}");
        assert!(error.to_string().contains("`compile_time`"), "{way}: {error}");
    }
}
