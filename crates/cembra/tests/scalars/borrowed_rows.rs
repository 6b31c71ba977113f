//! Tests rows that borrow: a stored executor for a struct with a derive runs rows of any lifetime; an executor for a
//! loader runs rows of the loader's row type.

use cembra::loaders::{AccessorsListener, AccessorsLoader, LoaderRow};
use cembra::{Backend, Error, Input, InputValue, Model, ModelExecutor, Options, Output, Pool, QType, ValueRef};
use std::borrow::Cow;

fn backends() -> [Options; 3] {
    [Backend::Interpreter, Backend::Native, Backend::Tiered].map(|backend| Options::default().backend(backend))
}

fn executor<I: Input, O: Output>(text: &str, options: &Options) -> ModelExecutor<I, O> {
    Model::parse(text).and_then(|model| model.executor(options)).expect("an executor")
}

#[derive(cembra::Input)]
struct Request<'r> {
    host: &'r str,
    path: Option<Cow<'r, str>>,
    n: i64,
}

#[derive(cembra::Output, Debug, Default, PartialEq)]
struct Reply {
    score: i64,
    label: String,
    path: Option<String>,
}

const REQUEST: &str = "
    input host: text, path: text?, n: i64
    output score = if host == \"a\" then n else -n
    output label = strings.upper(host)
    output \"path\" = path";

/// The state of a service. Its type does not name the lifetime of a request.
struct Service {
    pool: Pool<ModelExecutor<Request<'static>, Reply>>,
}

impl Service {
    fn answer(&self, host: &str, path: Option<&str>, n: i64) -> Reply {
        let row = Request { host, path: path.map(Cow::Borrowed), n };
        self.pool.with(|executor| executor.run(&row)).expect("a reply")
    }
}

#[test]
fn a_pool_in_a_service_takes_the_rows_of_each_request() {
    for options in backends() {
        let service = Service { pool: Pool::new(executor(REQUEST, &options)) };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let service = &service;
                scope.spawn(move || {
                    for n in 0..50 {
                        let host = format!("host {thread} {n}");
                        let path = (n % 3 > 0).then(|| format!("/{n}"));
                        let reply = service.answer(&host, path.as_deref(), n);
                        assert_eq!(reply, Reply { score: -n, label: host.to_uppercase(), path });
                    }
                    assert_eq!(service.answer("a", None, 3).score, 3);
                });
            }
        });
    }
}

#[test]
fn results_stay_when_their_row_is_gone() {
    for options in backends() {
        let mut run = executor::<Request<'_>, Reply>(REQUEST, &options);
        let mut kept = Vec::new();
        let mut host = String::with_capacity(64);
        for n in 0..20 {
            // The text of the next row lies where that of this one does.
            host.clear();
            host.push_str(&"h".repeat(n + 20));
            let row = Request { host: &host, path: Some(Cow::Owned(n.to_string())), n: 1 };
            let mut over = Reply::default();
            run.run_into(&row, &mut over).unwrap();
            assert_eq!(run.run(&row).unwrap(), over);
            kept.push(over);
        }
        drop(host);
        for (n, reply) in kept.iter().enumerate() {
            let expected = Reply { score: -1, label: "H".repeat(n + 20), path: Some(n.to_string()) };
            assert_eq!(*reply, expected);
        }
    }
}

#[test]
fn many_rows_of_another_lifetime() {
    for options in backends() {
        let mut run = executor::<Request<'static>, i64>(REQUEST, &options);
        for round in 0..3_usize {
            let hosts: Vec<String> = (0..100).map(|at| if at % 7 == round { "a" } else { "b" }.to_owned()).collect();
            let row = |(host, n)| Request { host, path: None, n };
            let rows: Vec<Request<'_>> = hosts.iter().map(String::as_str).zip(1..).map(row).collect();
            let mut scores = vec![0; 100];
            run.run_many(&rows, &mut scores).unwrap();
            let expected = (0..100).map(|at| if at % 7 == round as i64 { at + 1 } else { -at - 1 });
            assert_eq!(scores, expected.collect::<Vec<_>>());
        }
    }
}

#[derive(cembra::Input)]
struct Two<'text, 'list: 'text> {
    name: &'text str,
    weights: &'list [f64],
}

#[test]
fn the_lifetimes_of_a_row_may_differ() {
    struct Weights {
        executor: ModelExecutor<Two<'static, 'static>, f64>,
    }
    impl Weights {
        fn scaled(&mut self, weights: &[f64]) -> f64 {
            (1..4).map(|n| self.executor.run(&Two { name: &"n".repeat(n), weights }).unwrap()).sum()
        }
    }
    for options in backends() {
        let text = "math.sum(weights) * strings.length(name)";
        let mut weights = Weights { executor: executor(text, &options) };
        assert_eq!(weights.scaled(&[1.0, 2.5]), 3.5 * 6.0);
        assert_eq!(weights.scaled(&vec![0.5; 100]), 50.0 * 6.0);
    }
}

#[derive(cembra::Input)]
struct Tagged<'r, T: InputValue, const N: usize> {
    tag: &'r str,
    value: T,
    past: [f64; N],
}

#[test]
fn parameters_stay_what_they_are() {
    for options in backends() {
        let text = "input value: f64; math.sum(past) + value + (if tag == \"half\" then 0.5 else 0.0)";
        let mut floats = executor::<Tagged<'static, f64, 3>, f64>(text, &options);
        for tag in ["half".to_owned(), "whole".to_owned()] {
            let found = floats.run(&Tagged { tag: &tag, value: 2.0, past: [1.0, 2.0, 3.0] }).unwrap();
            assert_eq!(found, if tag == "half" { 8.5 } else { 8.0 });
        }
        // A parameter that borrows keeps its own lifetime.
        let value = String::from("1.5");
        let mut texts = executor::<Tagged<'_, &str, 0>, String>("value + tag", &options);
        let tag = String::from("s");
        assert_eq!(texts.run(&Tagged { tag: &tag, value: &*value, past: [] }).unwrap(), "1.5s");
    }
}

#[derive(cembra::Input)]
struct Item<'r> {
    article: &'r str,
    price: f64,
    note: Option<&'r str>,
}

#[derive(cembra::Input)]
struct Order<'r> {
    items: &'r [Item<'r>],
    first: Option<Item<'r>>,
    names: Vec<&'r str>,
}

#[derive(cembra::Output, Debug, PartialEq)]
struct Line {
    label: String,
}

#[derive(cembra::Output, Debug, PartialEq)]
struct Bill {
    total: f64,
    lines: Vec<Line>,
    named: i64,
}

#[test]
fn lists_of_rows_that_borrow() {
    let text = "
        input items: [{article: text, price: f64, note: text?}]
        input first: {article: text, price: f64, note: text?}?
        input names: [text]
        output total = sum(map(fn(item) = item.price, items)) + (first.price ?? 0.5)
        output lines = map(fn(item) = {label: strings.upper(item.article) + (item.note ?? \"\")}, items)
        output named = count(names)";
    for options in backends() {
        let pool = Pool::new(executor::<Order<'static>, Bill>(text, &options));
        for n in [0, 1, 3, 100] {
            let articles: Vec<String> = (0..n).map(|at| format!("article {at}")).collect();
            let item = |article| Item { article, price: 2.0, note: Some("!") };
            let items: Vec<Item<'_>> = articles.iter().map(|article| item(article)).collect();
            let first = articles.first().map(|article| item(article));
            let row = Order { items: &items, first, names: articles.iter().map(String::as_str).collect() };
            let bill = pool.with(|executor| executor.run(&row)).unwrap();
            drop(row);
            let lines = (0..n).map(|at| Line { label: format!("ARTICLE {at}!") }).collect();
            let total = f64::from(n) * 2.0 + if n == 0 { 0.5 } else { 2.0 };
            assert_eq!(bill, Bill { total, lines, named: n.into() });
        }
    }
}

/// A row that borrows from a text with the lifetime `'r`.
trait ReadFrom<'r> {
    fn text(&self) -> &'r str;
}

impl<'r> ReadFrom<'r> for &'r str {
    fn text(&self) -> &'r str {
        self
    }
}

#[derive(cembra::Input)]
struct Bounded<'r, T: ReadFrom<'r>> {
    name: &'r str,
    #[cembra(skip)]
    source: T,
}

#[test]
fn a_struct_whose_bounds_name_its_lifetime_keeps_it() {
    let source = String::from("ann");
    let row = Bounded { name: &source, source: &*source };
    let mut run = executor::<Bounded<'_, &str>, String>("strings.upper(name)", &Options::default());
    assert_eq!(run.run(&row).unwrap(), "ANN");
    assert_eq!(row.source.text(), "ann");
}

/// Runs an executor twice on a row of any type.
fn twice<I: Input, O: Output>(run: &mut ModelExecutor<I, O>, row: &I::At<'_>) -> Result<[O; 2], Error> {
    Ok([run.run(row)?, run.run(row)?])
}

#[test]
fn functions_take_rows_of_any_type() {
    let mut run = executor::<Request<'static>, i64>(REQUEST, &Options::default());
    let host = String::from("a");
    assert_eq!(twice(&mut run, &Request { host: &host, path: None, n: 2 }).unwrap(), [2, 2]);
    let mut none = executor::<(), f64>("1.5f64 + 2", &Options::default());
    assert_eq!(twice(&mut none, &()).unwrap(), [3.5, 3.5]);
}

/// A row that only a loader can read, because it has no derive.
struct Headers<'b> {
    pairs: Vec<(&'b str, &'b str)>,
}

impl<'b> Headers<'b> {
    fn get(&self, name: &str) -> Option<&'b str> {
        self.pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1)
    }
}

#[test]
fn loaders_read_rows_that_borrow() {
    let text = "input host: text, agent: text?; output y = if host == \"a\" then 1.0 else 0.0; output z = agent";
    for options in backends() {
        let (host, agent) = (String::from("a"), String::from("curl"));
        let loader = AccessorsLoader::new().others(|headers: &Headers<'_>, name| headers.get(name).into());
        let listener = AccessorsListener::new().with("z", |heard: &mut Vec<String>, value| {
            if let ValueRef::Text(text) = value {
                heard.push(text.into_owned());
            }
        });
        let model = Model::parse(text).unwrap();
        let mut run = model.executor_between::<Headers<'_>, f64, _>(&loader, &listener, &options).unwrap();
        let mut heard = Vec::new();
        let row = Headers { pairs: vec![("host", &host), ("agent", &agent)] };
        assert_eq!(run.listen(&row, &mut heard).unwrap(), 1.0);
        let other = Headers { pairs: vec![("host", &agent)] };
        assert_eq!(run.listen(&other, &mut heard).unwrap(), 0.0);
        assert_eq!(heard, ["curl"]);
        // An accessor that makes its text.
        let made = AccessorsLoader::new().with("name", QType::TEXT, |headers: &Headers<'_>| {
            ValueRef::from(headers.pairs.iter().map(|pair| pair.1).collect::<String>())
        });
        let mut upper =
            Model::parse("strings.upper(name)").unwrap().executor_from::<_, String>(&made, &options).unwrap();
        assert_eq!(upper.run(&row).unwrap(), "ACURL");
    }
}

/// `run_many` on rows of a loader reads inputs by the loader's accessors, also if the row's type has fields with the
/// inputs' names.
#[test]
fn many_rows_of_a_loader_are_read_by_it() {
    #[derive(cembra::Input)]
    struct Point {
        x: f64,
        y: f64,
    }
    let loader = AccessorsLoader::new().with("x", QType::FLOAT64, |point: &Point| point.y.into()).with(
        "y",
        QType::FLOAT64,
        |point| point.x.into(),
    );
    for options in backends() {
        let model = Model::parse("x * 10.0 + y").unwrap();
        let mut run: ModelExecutor<LoaderRow<Point>, f64> = model.executor_from(&loader, &options).unwrap();
        let rows = [Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }];
        let mut found = [0.0; 2];
        run.run_many(&rows, &mut found).unwrap();
        assert_eq!(found, [21.0, 43.0]);
    }
}
