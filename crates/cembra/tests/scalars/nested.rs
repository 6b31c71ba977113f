//! Tests nested requests: structs in structs, optional structs, lists of structs and dictionaries, as Rust structs with
//! a derive and by serde.

use cembra::{Backend, Error, Model, Options};
use std::collections::{BTreeMap, HashMap};

#[derive(cembra::FieldType, serde::Serialize, Clone, Copy, PartialEq, Debug)]
#[cembra(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
enum Kind {
    Book,
    Toy,
}

#[derive(cembra::Input, serde::Serialize, Clone)]
struct Address {
    city: String,
    zip: Option<i32>,
}

#[derive(cembra::Input, serde::Serialize, Clone)]
struct Customer<'t> {
    name: &'t str,
    home: Address,
    work: Option<Address>,
    points: i64,
    #[cembra(skip)]
    #[serde(skip)]
    _seen: std::cell::Cell<u32>,
}

#[derive(cembra::Input, serde::Serialize, Clone)]
struct Item {
    price: f64,
    kind: Option<Kind>,
    count: u16,
}

#[derive(cembra::Input, serde::Serialize, Clone)]
struct Order<'t> {
    id: i64,
    customer: Option<Customer<'t>>,
    items: Vec<Item>,
    gifts: Vec<Option<Item>>,
    rates: HashMap<String, f64>,
    limits: BTreeMap<i32, Option<f64>>,
    weights: [f64; 2],
}

#[derive(cembra::Output, PartialEq, Debug)]
struct Line {
    price: f64,
    kind: Option<String>,
}

#[derive(cembra::Output, PartialEq, Debug)]
struct Place {
    city: String,
    zip: Option<i32>,
}

#[derive(cembra::Output, PartialEq, Debug)]
struct Bill {
    total: f64,
    greeting: String,
    lines: Vec<Line>,
    place: Option<Place>,
    first: Option<Line>,
    gifts: Vec<Option<Line>>,
    weight: f64,
    #[cembra(default)]
    note: Option<String>,
}

const MODEL: &str = "
    input id: i64
    input customer: {name: text, home: {city: text, zip: i32?}, work: {city: text, zip: i32?}?, points: i64}?
    input items: [{price: f64, kind: text?, count: i32}]
    input gifts: [{price: f64, kind: text?, count: i32}?]
    input rates: dict[text, f64]
    input limits: dict[i32, f64]
    input weights: [f64]
    let factor = dict.get(rates, items.kind) ?? 1.0
    output total = sum(items.price * items.count * factor) - (lookup(7, limits) ?? 0.0)
    output greeting = (customer.name ?? \"nobody\") + \" of \" + (customer.work.city ?? customer.home.city ?? \"nowhere\")
    output lines = map(fn(i) = {price: i.price, kind: i.kind}, items[items.price > 1.0])
    output place = customer.home
    output first = if array.size(items) > 0 then {price: items[0].price, kind: items[0].kind}
    output \"gifts\" = map(fn(i) = if has(i) then {price: i.price ?? 0.0, kind: i.kind}, gifts)
    output weight = sum(weights)
";

fn orders() -> [Order<'static>; 2] {
    let address = |city: &str, zip| Address { city: city.to_owned(), zip };
    let customer = Customer {
        name: "Ann",
        home: address("Bern", Some(3000)),
        work: Some(address("Chur", None)),
        points: 7,
        _seen: Default::default(),
    };
    let item = |price, kind, count| Item { price, kind, count };
    let full = Order {
        id: 1,
        customer: Some(customer),
        items: vec![item(10.0, Some(Kind::Book), 2), item(0.5, None, 4), item(3.0, Some(Kind::Toy), 1)],
        gifts: vec![None, Some(item(1.5, Some(Kind::Toy), 1))],
        rates: [("book".to_owned(), 0.5), ("toy".to_owned(), 2.0)].into(),
        limits: [(7, Some(1.0)), (8, None)].into(),
        weights: [0.25, 0.5],
    };
    let empty = Order {
        id: 2,
        customer: None,
        items: vec![],
        gifts: vec![],
        rates: HashMap::new(),
        limits: BTreeMap::new(),
        weights: [0.0; 2],
    };
    [full, empty]
}

fn bills() -> [Bill; 2] {
    let line = |price, kind: &str| Line { price, kind: Some(kind.to_owned()) };
    [
        Bill {
            total: 10.0 + 2.0 + 6.0 - 1.0,
            greeting: "Ann of Chur".to_owned(),
            lines: vec![line(10.0, "book"), line(3.0, "toy")],
            place: Some(Place { city: "Bern".to_owned(), zip: Some(3000) }),
            first: Some(line(10.0, "book")),
            gifts: vec![None, Some(line(1.5, "toy"))],
            weight: 0.75,
            note: None,
        },
        Bill {
            total: 0.0,
            greeting: "nobody of nowhere".to_owned(),
            lines: vec![],
            place: None,
            first: None,
            gifts: vec![],
            weight: 0.0,
            note: None,
        },
    ]
}

#[test]
fn a_request_has_structs_lists_and_dictionaries() {
    let model = Model::parse(MODEL).expect("a model");
    for backend in [Backend::Native, Backend::Interpreter] {
        let options = Options::default().backend(backend);
        let mut derived = model.executor::<Order<'_>, Bill>(&options).expect("an executor");
        let mut serialised = model.executor_for_rows::<Bill>(&options).expect("an executor");
        let mut again = bills().map(|bill| Bill { greeting: "another".to_owned(), ..bill });
        for ((order, bill), again) in orders().iter().zip(bills()).zip(&mut again) {
            assert_eq!(derived.run(order).expect("a bill"), bill, "{backend:?}");
            assert_eq!(serialised.run(order).expect("a bill"), bill, "{backend:?}");
            derived.run_into(order, again).expect("a bill");
            assert_eq!(*again, bill);
        }
    }
}

/// A model with structs but without lists is evaluated row by row, with values in a frame.
#[test]
fn structs_go_through_frames() {
    #[derive(cembra::Input)]
    struct Row<'t> {
        customer: Option<Customer<'t>>,
        home: Address,
        bonus: f64,
    }
    #[derive(cembra::Output, PartialEq, Debug)]
    struct Out {
        points: f64,
        name: String,
        home: Place,
        work: Option<Place>,
        kind: Option<Kind>,
    }
    let text = "
        input customer: {name: text, home: {city: text, zip: i32?}, work: {city: text, zip: i32?}?, points: i64}?
        input home: {city: text, zip: i32?}
        output points = (customer.points ?? 0) * bonus
        output name = customer.name ?? \"nobody\"
        output \"home\" = customer.home ?? home
        output work = customer.work
        output kind = if customer.points > 5 then \"book\"";
    let model = Model::parse(text).expect("a model");
    let [full, _] = orders();
    let home = || Address { city: "Uri".to_owned(), zip: None };
    let rows =
        [Row { customer: full.customer, home: home(), bonus: 0.5 }, Row { customer: None, home: home(), bonus: 0.5 }];
    let place = |city: &str, zip| Place { city: city.to_owned(), zip };
    let expected = [
        Out {
            points: 3.5,
            name: "Ann".to_owned(),
            home: place("Bern", Some(3000)),
            work: Some(place("Chur", None)),
            kind: Some(Kind::Book),
        },
        Out { points: 0.0, name: "nobody".to_owned(), home: place("Uri", None), work: None, kind: None },
    ];
    for backend in [Backend::Native, Backend::Interpreter, Backend::Tiered] {
        let mut executor = model.executor::<Row<'_>, Out>(&Options::default().backend(backend)).expect("an executor");
        assert_eq!([executor.run(&rows[0]).expect("a row"), executor.run(&rows[1]).expect("a row")], expected);
        let mut many = [executor.run(&rows[1]).expect("a row"), executor.run(&rows[0]).expect("a row")];
        executor.run_many(&rows, &mut many).expect("rows");
        assert_eq!(many, expected);
    }
}

#[test]
fn what_does_not_fit_is_said() {
    #[derive(cembra::Input)]
    struct Row {
        home: Address,
    }
    #[derive(cembra::Output, Debug)]
    struct Out {
        kinds: Vec<Kind>,
    }
    let refused = |text: &str| {
        Model::parse(text).expect("a model").executor::<Row, i32>(&Options::default()).expect_err("another type")
    };
    let error = refused("input home: {zip: i64?, city: text}; output y = core.to_int32(home.zip ?? 0)");
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("binding", "input `home.zip` is i64?, but its field is i32?")
    );
    let error = refused("input home: {zip: i32?, street: text}; output y = home.zip ?? strings.length(home.street)");
    assert_eq!(
        (error.code(), error.to_string().split(';').next().expect("a message")),
        ("binding", "input `home.street` is text, but its struct has no field `street`")
    );
    // Fields are matched by their names, whatever their order is, one by one and for many rows.
    let model = Model::parse("input home: {zip: i32?}; output y = home.zip ?? 7").expect("a model");
    let mut executor = model.executor::<Row, i32>(&Options::default()).expect("an executor");
    let row = |zip| Row { home: Address { city: "x".to_owned(), zip } };
    assert_eq!([executor.run(&row(Some(3))).expect("a row"), executor.run(&row(None)).expect("a row")], [3, 7]);
    let mut many = [0; 2];
    executor.run_many(&[row(None), row(Some(4))], &mut many).expect("rows");
    assert_eq!(many, [7, 4]);
    // What an enum does not have is an error, and nothing is lost.
    let model =
        Model::parse("input home: {city: text, zip: i32?}; output kinds = [home.city, \"book\"]").expect("a model");
    let mut executor = model.executor::<Row, Out>(&Options::default()).expect("an executor");
    let error: Error = executor.run(&Row { home: Address { city: "car".to_owned(), zip: None } }).expect_err("no kind");
    assert_eq!(error.code(), "values");
    assert!(executor.run(&Row { home: Address { city: "toy".to_owned(), zip: None } }).is_ok());
}

/// A field may be an `Option` of a list, but models have no missing lists: `None` is an error for its row, with a
/// derive and by serde.
#[test]
fn lists_that_are_not_given_are_errors() {
    #[derive(cembra::Input, serde::Serialize, Clone)]
    struct Deep {
        codes: Option<Vec<i32>>,
    }
    #[derive(cembra::Input, serde::Serialize, Clone)]
    struct Request {
        items: Option<Vec<Item>>,
        gifts: Option<Vec<Option<Item>>>,
        weights: Option<[f64; 2]>,
        names: Option<Vec<String>>,
        deep: Deep,
    }
    #[derive(cembra::Output, PartialEq, Debug)]
    struct Reply {
        lines: Option<Vec<Line>>,
        names: Option<Vec<String>>,
        total: f64,
        #[cembra(default)]
        others: Option<Vec<Line>>,
    }
    let text = "
        input items: [{price: f64, kind: text?, count: i32}]
        input gifts: [{price: f64, kind: text?, count: i32}?]
        input weights: [f64]
        input names: [text]
        input deep: {codes: [i32]}
        output lines = map(fn(i) = {price: i.price, kind: i.kind}, items)
        output \"names\" = names
        output total = sum(weights) + sum(deep.codes) + array.size(gifts)";
    let model = Model::parse(text).expect("a model");
    let given = Request {
        items: Some(vec![Item { price: 1.5, kind: None, count: 1 }]),
        gifts: Some(vec![None]),
        weights: Some([0.25, 0.5]),
        names: Some(vec!["a".to_owned()]),
        deep: Deep { codes: Some(vec![3]) },
    };
    let expected = || Reply {
        lines: Some(vec![Line { price: 1.5, kind: None }]),
        names: Some(vec!["a".to_owned()]),
        total: 4.75,
        others: None,
    };
    let without = [
        (
            Request { items: None, ..given.clone() },
            "input `items` is [{price: f64, kind: text?, count: i32}], but it is missing",
        ),
        (Request { weights: None, ..given.clone() }, "input `weights` is [f64?], but it is missing"),
        (
            Request { deep: Deep { codes: None }, ..given.clone() },
            "input `deep` is {codes: [i32?]}, but a list in it is missing",
        ),
    ];
    for backend in [Backend::Native, Backend::Interpreter] {
        let options = Options::default().backend(backend);
        let mut derived = model.executor::<Request, Reply>(&options).expect("an executor");
        let mut serialised = model.executor_for_rows::<Reply>(&options).expect("an executor");
        assert_eq!(derived.run(&given).expect("a reply"), expected());
        assert_eq!(serialised.run(&given).expect("a reply"), expected());
        for (request, message) in &without {
            let error = derived.run(request).expect_err("no list");
            assert_eq!((error.code(), error.to_string().as_str()), ("values", *message));
            let error = serialised.run(request).expect_err("no list");
            assert_eq!(error.code(), "values", "{error}");
            let mut replies = [expected(), expected()];
            derived.run_many(&[given.clone(), request.clone()], &mut replies).expect_err("no list");
            assert_eq!(replies, [expected(), expected()]);
        }
    }
}
