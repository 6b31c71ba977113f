//! Tests operators that a model's text declares and the host defines: without the host, the model can be checked; with
//! it, the model runs.

use cembra::operators::{Registry, UserOperator};
use cembra::{Backend, Model, Options, QType, Scalar, Value};
use std::sync::OnceLock;

const TEXT: &str = "extern fn fx.rate(text, text): f64?
extern fn fx.fee(f64): f64
input price: f32, currency: text
let known = fx.rate(currency, \"EUR\")
output net = price * (known ?? 1.0)
output fees: f64? = core.map_tuple(fx.fee, (price * 1.0f64,)).0
output doubled = price * 2.0";

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<&'static Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut registry = Registry::standard().clone();
        let rate = |from: cembra::Text<'_>, to: cembra::Text<'_>| {
            (from.as_str() == "CHF" && to.as_str() == "EUR").then_some(1.5)
        };
        registry.register(UserOperator::new("fx.rate").function(rate)).expect("a new name");
        registry.register(UserOperator::new("fx.fee").function(|price: f64| price / 8.0)).expect("a new name");
        registry.leak()
    })
}

fn types(model: &Model, options: &Options) -> Vec<String> {
    let signature = model.signature(options).expect("a signature");
    signature.inputs.iter().chain(&signature.outputs).map(|field| format!("{}: {}", field.name, field.qtype)).collect()
}

#[test]
fn a_text_is_checked_without_the_host_as_with_it() {
    let alone = Model::parse(TEXT).unwrap();
    let hosted = Model::parse_with(TEXT, registry(), &Default::default()).unwrap();
    assert_eq!(alone.program(), hosted.program());
    let found = types(&alone, &Options::default());
    assert_eq!(found, ["price: f32", "currency: text", "net: f64", "fees: f64?", "doubled: f32"]);
    assert_eq!(found, types(&hosted, &Options::default().registry(registry())));
    assert_eq!(alone.warnings(&Options::default()).count(), 0);
    let text = cembra::explain::print(alone.program());
    assert!(
        text.starts_with("input price: f32\ninput currency: text\nextern fn fx.rate(text, text): f64?\n"),
        "{text}"
    );
    assert_eq!(Model::parse(&text).unwrap().program(), alone.program());
    assert_eq!(Model::from_binary(&alone.to_binary()).unwrap().program(), alone.program());
}

#[test]
fn what_needs_no_operator_of_the_host_runs_without_it() {
    let alone = Model::parse(TEXT).unwrap();
    for backend in [Backend::Interpreter, Backend::Native] {
        let options = Options::default().backend(backend);
        let error = alone.compile(&options).unwrap_err();
        assert_eq!(
            (error.code(), error.span().map(|span| span.text(TEXT))),
            ("extern", Some("fx.rate(currency, \"EUR\")"))
        );
        let executor = alone.compile(&options.clone().outputs(["doubled"])).unwrap();
        assert_eq!(executor.session().evaluate(&[Value::from(1.5_f32)]).unwrap(), [Value::from(3_f32)]);
        let hosted = alone.compile(&options.registry(registry())).unwrap();
        let row = [Value::from(2_f32), Value::text("CHF")];
        let found = hosted.session().evaluate(&row).unwrap();
        assert_eq!(found, [Value::from(3.0), Value::from(Some(0.25)), Value::from(4_f32)]);
        let found = hosted.session().evaluate(&[Value::from(2_f32), Value::text("USD")]).unwrap();
        assert_eq!(found[0], Value::from(2.0));
    }
}

#[test]
fn the_host_has_what_is_declared() {
    for (text, says) in [
        ("extern fn fx.fee(f64): f32; 1", "`fx.fee` is declared `(f64): f32`, but the host's operator results in f64"),
        ("extern fn fx.fee(text): f64; 1", "`fx.fee` is declared `(text): f64`, but the host's operator differs"),
        (
            "extern fn fx.fee(f64?): f64; 1",
            "`fx.fee` is declared `(f64?): f64`, but the host's operator results in f64?",
        ),
    ] {
        let model = Model::parse(text).unwrap();
        assert!(model.compile(&Options::default()).is_ok(), "{text}");
        let error = model.compile(&Options::default().registry(registry())).unwrap_err();
        assert_eq!((error.code(), error.span().map(|span| span.text(text))), ("extern", Some("fx.fee")));
        assert!(error.to_string().starts_with(says), "{error}");
    }
    // A strict operator of plain values takes optional ones too.
    let model = Model::parse("extern fn fx.fee(f64?): f64?; input x: f64?; fx.fee(x)").unwrap();
    let executor = model.compile(&Options::default().registry(registry())).unwrap();
    assert_eq!(executor.outputs()[0].qtype, QType::Optional(Scalar::Float64));
    assert_eq!(executor.session().evaluate(&[Value::from(Some(4.0))]).unwrap(), [Value::from(Some(0.5))]);
}
