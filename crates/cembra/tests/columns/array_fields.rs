//! Tests struct fields that are arrays, such as `&[f64]`, in inputs and outputs of models with arrays.

use cembra::columns::{ArrayView, Bitmap};
use cembra::errors::Code;
use cembra::{Backend, Cancellation, Date, Error, FaultKind, Mask, Model, ModelExecutor, Optional, Options, Pool};

#[derive(cembra::Input)]
struct Request<'a> {
    xs: &'a [f64],
    #[cembra(rename = "weights")]
    given: Vec<Optional<f64>>,
    k: f64,
    limit: Option<f64>,
    name: &'a str,
    unused: &'a [i32],
}

#[derive(cembra::Output, Debug, PartialEq)]
struct Scores {
    total: f64,
    shares: Vec<Optional<f64>>,
    clipped: Vec<f64>,
    say: String,
    best: Option<f64>,
    some: Mask,
}

const SCORER: &str = "\
input limit: f64?
let w = xs * weights
output total = math.sum(w) * k
output shares = w / math.sum(w)
output clipped = min(xs, limit ?? 10.0)
output say = strings.upper(name)
output best = math.max(w)
output some = any(w > 3.0)";

fn scorer(options: &Options) -> ModelExecutor<Request<'static>, Scores> {
    Model::parse(SCORER).and_then(|model| model.executor(options)).expect("a model of structs")
}

fn request() -> Request<'static> {
    Request {
        xs: &[1.0, 2.0, 3.0],
        given: vec![Optional::present(2.0), Optional::missing(), Optional::present(2.0)],
        k: 10.0,
        limit: Some(2.5),
        name: "ann",
        unused: &[],
    }
}

#[test]
fn slices_and_vectors_go_in_and_vectors_come_out() {
    for backend in [Backend::Auto, Backend::Interpreter, Backend::Tiered] {
        let mut scorer = scorer(&Options::default().backend(backend));
        let shares = vec![Optional::present(0.25), Optional::missing(), Optional::present(0.75)];
        let expected = Scores {
            total: 80.0,
            shares,
            clipped: vec![1.0, 2.0, 2.5],
            say: "ANN".to_owned(),
            best: Some(6.0),
            some: Mask(true),
        };
        assert_eq!(scorer.run(&request()).unwrap(), expected);
        // No elements at all, and into what is there.
        let mut scores = expected;
        let none = Request { xs: &[], given: Vec::new(), limit: None, ..request() };
        scorer.run_into(&none, &mut scores).unwrap();
        let empty = Scores {
            total: 0.0,
            shares: vec![],
            clipped: vec![],
            say: "ANN".to_owned(),
            best: None,
            some: Mask(false),
        };
        assert_eq!(scores, empty);
        let mut others = [(); 2].map(|()| scorer.run(&none).unwrap());
        scorer.run_many(&[request(), none], &mut others).unwrap();
        assert_eq!((others[0].total, others[1].total), (80.0, 0.0));
        assert!(scorer.raw().is_none());
    }
}

#[test]
fn failures_leave_the_output_as_it_was() {
    let mut scorer = scorer(&Options::default());
    let mut scores = scorer.run(&request()).unwrap();
    let short = Request { xs: &[1.0], ..request() };
    let error = scorer.run_into(&short, &mut scores).unwrap_err();
    assert_eq!((error.fault_kind(), scores.total), (Some(FaultKind::SizeMismatch), 80.0));
    let mut both = [scores, scorer.run(&request()).unwrap()];
    let error = scorer.run_many(&[request(), short], &mut both).unwrap_err();
    assert_eq!(error.row(), Some(1));
    let token = Cancellation::new();
    token.cancel();
    scorer.set_cancellation(Some(token));
    assert_eq!(scorer.run(&request()).unwrap_err().fault_kind(), Some(FaultKind::Cancelled));
    let pool = Pool::new(scorer.clone());
    assert_eq!(pool.with(|scorer| scorer.run(&request())).unwrap().total, 80.0);
}

#[test]
fn a_missing_element_needs_a_place() {
    #[derive(cembra::Input)]
    struct Row<'a> {
        x: ArrayView<'a, i64>,
    }
    let model = Model::parse("output y = x * 2; output n = array.count(x)").unwrap();
    let mut doubled = model.executor::<Row<'_>, Vec<i64>>(&Options::default()).unwrap();
    let values = [1, 2, 3];
    assert_eq!(doubled.run(&Row { x: ArrayView::new(&values) }).unwrap(), [2, 4, 6]);
    let holes = ArrayView::new(&values).present(Bitmap::new(&[0b101], 0, 3).unwrap()).unwrap();
    let mut kept = vec![7];
    let error = doubled.run_into(&Row { x: holes }, &mut kept).unwrap_err();
    assert_eq!((error.code(), kept), ("values", vec![7]));
    assert!(error.to_string().starts_with("an element of output `y` is missing"));
    let mut doubled = model.executor::<Row<'_>, Vec<Option<i64>>>(&Options::default()).unwrap();
    assert_eq!(doubled.run(&Row { x: holes }).unwrap(), [Some(2), None, Some(6)]);
}

#[test]
fn fields_may_be_arrays_of_any_scalars() {
    #[derive(cembra::Input)]
    struct Row {
        flags: Vec<bool>,
        days: Vec<Date>,
        texts: Vec<Option<String>>,
        small: Vec<f32>,
    }
    #[derive(cembra::Output, Debug, PartialEq)]
    struct Found {
        off: Vec<bool>,
        same: Vec<Date>,
        upper: Vec<Option<String>>,
        shown: Vec<String>,
        half: Vec<f32>,
    }
    let model = Model::parse(
        "output off = bool.logical_not(flags); output same = days; output upper = strings.upper(texts)
         output shown = strings.as_text(small); output half = small / 2.0",
    );
    let mut found = model.unwrap().executor::<Row, Found>(&Options::default()).unwrap();
    let row = Row {
        flags: vec![true, false],
        days: vec![Date(3), Date(-1), Date(0)],
        texts: vec![Some("a".to_owned()), None],
        small: vec![1.5, -3.0, 0.5],
    };
    let expected = Found {
        off: vec![false, true],
        same: row.days.clone(),
        upper: vec![Some("A".to_owned()), None],
        shown: vec!["1.5".to_owned(), "-3".to_owned(), "0.5".to_owned()],
        half: vec![0.75, -1.5, 0.25],
    };
    assert_eq!(found.run(&row).unwrap(), expected);
}

#[test]
fn fields_of_other_types_are_refused() {
    fn refused<T>(made: Result<T, Error>) -> String {
        let error = made.err().expect("an error");
        assert!([Code::Binding, Code::InputType].iter().any(|code| error.code() == code.as_str()));
        error.to_string()
    }
    let model = |text: &str| Model::parse(text).unwrap();
    let options = Options::default();
    assert_eq!(
        refused(model("input xs: [i32]; math.sum(xs)").executor::<Request<'_>, i32>(&options)),
        "input `xs` is declared [i32?], but is given as [f64?]"
    );
    assert_eq!(
        refused(model("input xs: f64; xs").executor::<Request<'_>, f64>(&options)),
        "input `xs` is declared f64, but is given as [f64?]"
    );
    let message = refused(model("xs * 2.0").executor::<Request<'_>, Vec<f32>>(&options));
    assert!(message.starts_with("output `result` is [f64?], but the result's type is"), "{message}");
    let message = refused(model("math.mean(xs)").executor::<Request<'_>, f64>(&options));
    assert!(message.starts_with("output `result` is f64?"), "{message}");
    // Which the options allow to mend.
    let mut mean = model("math.mean(xs)").executor::<Request<'_>, f64>(&options.clone().require_present(true)).unwrap();
    assert_eq!(mean.run(&request()).unwrap(), 2.0);
    let missing = model("input other: [f64]; math.sum(xs * other)").executor::<Request<'_>, f64>(&options);
    assert!(missing.is_err_and(|error| error.to_string().contains("`other`")));
}
