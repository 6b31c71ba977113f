//! Tests promises, conditions that a model declares for its inputs' values: they are preserved from the text to the
//! executor and in files, and checked in each call.

use cembra::values::{ArrayData, ArrayKind, Promise};
use cembra::{Array, Backend, Edge, Error, Field, Model, Options, Pool, Scalar, ScalarValue, Value};

#[test]
fn inputs_say_what_they_promise() {
    let text = "input unused: [f64], x: [f64], y: [f64?], by: splits, of: mapping, any: edge, k: f64\n\
                output s = math.sum(x + k, into=by) + math.sum(y, into=of); output t = math.sum(x, into=any)";
    let model = Model::parse(text).unwrap();
    let told = |fields: &[Field]| {
        let told = fields.iter().map(|field| (field.name.to_string(), field.promise, field.spelled_type()));
        told.collect::<Vec<_>>()
    };
    let expected = [
        ("x", Promise::Full, "[f64]"),
        ("y", Promise::Nothing, "[f64?]"),
        ("by", Promise::Splits, "splits"),
        ("of", Promise::Mapping, "mapping"),
        ("any", Promise::Nothing, "edge"),
        ("k", Promise::Nothing, "f64"),
    ]
    .map(|(name, promise, spelled)| (name.to_owned(), promise, spelled.to_owned()));
    let signature = model.signature(&Options::default()).unwrap();
    assert_eq!(told(&signature.inputs), expected);
    assert_eq!(told(&signature.outputs).iter().map(|(_, promise, _)| *promise).collect::<Vec<_>>(), [Promise::Full; 2]);
    let executor = model.compile(&Options::default()).unwrap();
    assert_eq!(told(executor.inputs()), expected);
    assert_eq!(executor.inputs().iter().filter(|input| input.is_full()).count(), 1);
    assert_eq!(executor.inputs()[0].qtype.to_string(), "[f64?]");
    assert_eq!(executor.outputs(), signature.outputs);
    // Files keep it, and so does the text that is printed.
    for read in [
        Model::from_binary(&model.to_binary()).unwrap(),
        Model::parse(&cembra::explain::print(model.program())).unwrap(),
    ] {
        assert_eq!(told(&read.signature(&Options::default()).unwrap().inputs), expected);
    }
}

#[test]
fn the_type_of_the_data_is_as_before() {
    // The type has nothing of the promise in it.
    let model = Model::parse("input x: [f64]; x").unwrap();
    let array = cembra::values::parse_type("[f64?]").unwrap();
    let signature = model.signature(&Options::default().input_type("x", array.clone())).unwrap();
    assert_eq!((&signature.inputs[0].qtype, signature.inputs[0].promise), (&array, Promise::Full));
    // What a program says by hand must fit.
    let mut program = model.program().clone();
    program.inputs[0].promise = Promise::Splits;
    let refused = Model::from_program(program).signature(&Options::default()).unwrap_err();
    assert_eq!((refused.code(), refused.span().map(|span| span.start)), ("input-type", Some(6)));
    let untyped = Model::parse("x * 2.0").unwrap().signature(&Options::default().input_type("x", array)).unwrap();
    assert_eq!(untyped.inputs[0].promise, Promise::Nothing);
}

fn doubles(values: &[Option<f64>]) -> Value {
    let array = Array::from_scalars(Scalar::Float64, values.iter().map(|value| value.map(ScalarValue::Float64)));
    Value::Array(ArrayKind::Dense, array.into())
}

/// Returns an array of `len` ones whose presence has the bits `presence`.
fn with_presence(len: usize, presence: Vec<u64>) -> Value {
    let ones = ArrayData::Numbers(vec![1.0_f64.to_bits(); len].into());
    Value::Array(ArrayKind::Dense, Array::from_parts(Scalar::Float64, len, ones, Some(presence)).expect("parts").into())
}

fn mapping(groups: &[Option<i64>], parents: usize) -> Value {
    let groups = Array::from_scalars(Scalar::Int64, groups.iter().map(|group| group.map(ScalarValue::Int64)));
    Edge::from_mapping(ArrayKind::Dense, groups, parents).expect("groups").into()
}

fn splits(sizes: &[i64]) -> Value {
    Edge::from_sizes(ArrayKind::Dense, sizes.iter().copied()).expect("sizes").into()
}

/// Evaluates the model `text` with both backends, asserts that they agree, and returns the result.
fn both(text: &str, inputs: &[Value]) -> Result<Vec<Value>, Error> {
    let [native, interpreter] = [Backend::Native, Backend::Interpreter].map(|backend| {
        let executor =
            Model::parse(text).and_then(|model| model.compile(&Options::default().backend(backend))).expect(text);
        let made = executor.session().evaluate(inputs);
        // Pools and listeners are no ways around.
        let pooled = Pool::new(executor.session()).with(|session| session.evaluate(inputs));
        let heard = executor.session().listen(inputs, &mut |_, _| {});
        assert_eq!(made.as_ref().err().map(Error::to_string), pooled.err().map(|error| error.to_string()));
        assert_eq!(made.as_ref().err().map(Error::to_string), heard.err().map(|error| error.to_string()));
        made
    });
    match (&native, &interpreter) {
        (Ok(native), Ok(interpreter)) => assert_eq!(native, interpreter),
        (Err(native), Err(interpreter)) => {
            assert_eq!((native.code(), native.to_string()), (interpreter.code(), interpreter.to_string()));
            assert_eq!((native.span(), native.element()), (interpreter.span(), interpreter.element()));
        }
        _ => panic!("{native:?} and {interpreter:?}"),
    }
    native
}

#[test]
fn an_input_that_promises_to_be_full_takes_no_gaps() {
    // Division by zero comes later: nothing runs.
    let text = "input x: [f64]; input y: [f64?]; output a = x // 0.0 + y";
    let full = doubles(&[Some(1.0), Some(2.0), Some(3.0)]);
    let gaps = doubles(&[Some(1.0), Some(2.0), None]);
    let error = both(text, &[gaps.clone(), full.clone()]).unwrap_err();
    assert_eq!((error.code(), error.element(), error.is_fault()), ("promise", Some(2), false));
    assert_eq!(error.span().unwrap().text(text), "x");
    assert_eq!(
        error.to_string(),
        "input `x` is [f64], but element 2 of the array is missing; declare the input as `[f64?]`, which takes arrays with missing \
         elements"
    );
    assert_eq!(both(text, &[full.clone(), gaps.clone()]).unwrap_err().code(), "div-by-zero");
    // What is missing may stand anywhere; bits of presence alone are no gap, nor are those behind the last element.
    let sum = "input x: [f64]; math.sum(x)";
    for (len, presence, first) in [
        (3, vec![0b111], None),
        (64, vec![u64::MAX], None),
        (70, vec![u64::MAX, 0b11_1111], None),
        (70, vec![u64::MAX, 0b01_1111], Some(69)),
        (130, vec![!(1 << 40), 0, 0], Some(40)),
        (0, vec![], None),
    ] {
        let made = both(sum, &[with_presence(len, presence)]);
        assert_eq!(made.as_ref().err().and_then(Error::element), first);
        assert_eq!(made.ok(), first.is_none().then(|| vec![Value::from(len as f64)]), "{len}");
    }
    assert_eq!(both(sum, &[doubles(&[])]).unwrap(), [Value::from(0.0)]);
    // Values of another type are refused as such, and the first input that is broken is told.
    assert_eq!(both(sum, &[Value::from(1.0)]).unwrap_err().code(), "values");
    let two = both("input x, y: [f64]; output z = y + x", &[doubles(&[Some(1.0), None]), doubles(&[None])]);
    assert_eq!(two.unwrap_err().element(), Some(1));
}

#[test]
fn edges_are_of_the_form_that_is_promised() {
    let x = doubles(&[Some(1.0), Some(2.0), Some(4.0)]);
    let (by_splits, by_mapping) = (splits(&[2, 1]), mapping(&[Some(0), None, Some(1)], 2));
    for (word, splits_fit, mappings_fit) in [("splits", true, false), ("mapping", false, true), ("edge", true, true)] {
        let text = format!("input x: [f64]; input by: {word}; math.sum(x, into=by)");
        for (edge, fits, expected) in [(&by_splits, splits_fit, [3.0, 4.0]), (&by_mapping, mappings_fit, [1.0, 4.0])] {
            match both(&text, &[x.clone(), edge.clone()]) {
                Ok(made) => assert!(fits && made == [doubles(&expected.map(Some))], "{word} {made:?}"),
                Err(error) => {
                    assert!(!fits, "{word} {error}");
                    assert_eq!((error.code(), error.element()), ("promise", None));
                    assert_eq!(error.span().unwrap().text(&text), "by");
                    let (found, wanted) = ("a mapping", "sizes or split points");
                    let (found, wanted) = if word == "splits" { (found, wanted) } else { (wanted, found) };
                    let expected = format!(
                        "input `by` is {word}, but the edge has {found} instead of {wanted}; declare the input as `edge`, which takes \
                         edges with sizes, split points or a mapping"
                    );
                    assert_eq!(error.to_string(), expected);
                }
            }
        }
    }
}
