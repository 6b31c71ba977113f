//! What inputs promise of their values: kept from the text to the executor and in files.

use cembra::{Field, Model, Options, Promise, QType};

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
    assert!(signature.outputs.iter().all(|output| output.promise == Promise::Nothing));
    let executor = model.compile(&Options::default()).unwrap();
    assert_eq!(told(executor.inputs()), expected);
    assert_eq!(executor.inputs().iter().filter(|input| input.is_full()).count(), 1);
    assert_eq!(executor.inputs()[0].qtype.to_string(), "DENSE_ARRAY_FLOAT64");
    assert!(executor.outputs().iter().all(|output| matches!(output.qtype, QType::Array(..)) && !output.is_full()));
    // Files keep it, and so does the text that is printed.
    for read in [
        Model::from_binary(&model.to_binary()).unwrap(),
        Model::from_json(&model.to_json()).unwrap(),
        Model::parse(&cembra::print(model.program())).unwrap(),
    ] {
        assert_eq!(told(&read.signature(&Options::default()).unwrap().inputs), expected);
    }
}

#[test]
fn the_type_of_the_data_is_as_before() {
    // The type has nothing of the promise in it.
    let model = Model::parse("input x: [f64]; x").unwrap();
    let array = cembra::parse_type("[f64?]").unwrap();
    let signature = model.signature(&Options::default().input_type("x", array.clone())).unwrap();
    assert_eq!((&signature.inputs[0].qtype, signature.inputs[0].promise), (&array, Promise::Full));
    let untyped = Model::parse("x * 2.0").unwrap().signature(&Options::default().input_type("x", array)).unwrap();
    assert_eq!(untyped.inputs[0].promise, Promise::Nothing);
}
