//! Tests of `cembra build`. The tests that link programs check that its object files and headers work.

use super::shell::{Shell, example};

#[test]
fn build_writes_what_it_is_asked_for() {
    let shell = Shell::new();
    let model = example("ahead-of-time/parcel.cem");
    let [object, header, rust] = ["parcel.o", "parcel.h", "parcel.rs"].map(|name| {
        let path = shell.path(name);
        path.to_str().expect("a path of text").to_owned()
    });
    let made = shell.stdout(&["build", &model, "-o", &object, "--header", &header, "--rust", &rust]);
    assert_eq!(made, "");
    assert!(
        shell.read("parcel.h").contains("\ntypedef struct {\n    double weight;\n    cembra_optional_f32 distance;\n")
    );
    assert!(shell.read("parcel.rs").contains("\n    pub distance: cembra_runtime::Optional<f32>,\n"));
    let bytes = std::fs::read(&object).expect("the object file");
    assert!(bytes.windows(13).any(|bytes| bytes == b"parcel_model\0"));
    let named = ["build", "-e", "x * 2.0", "--types", "x=f32", "-o", &object, "--header", &header, "--name", "twice"];
    assert_eq!(shell.stdout(&named), "");
    assert!(shell.read("parcel.h").contains("extern const cembra_model twice_model;"));
}

#[test]
fn what_cannot_be_built_is_told() {
    let shell = Shell::new();
    let refused = |args: &[&str], part: &str| {
        let outcome = shell.run(&[&["build", "-o", "x.o"], args].concat());
        assert!(outcome.status == Some(1) && outcome.stdout.is_empty() && outcome.stderr.contains(part), "{outcome}");
    };
    let upper = ["-e", "strings.upper(x)", "--types", "x=text"];
    refused(&upper, "error[object]: an object file cannot hold `strings.upper`");
    refused(&["-e", "1", "--name", "one-half"], "`one-half` cannot be the name of a model in C");
    refused(&["-e", "1", "--target", "i686-unknown-linux-gnu"], "64 bits");
    refused(&["-e", "1", "--cpu", "has_magic"], "has_magic");
    let outcome = shell.run(&["build", "-e", "1"]);
    assert!(outcome.status == Some(2) && outcome.stderr.contains("--output <FILE>"), "{outcome}");
}
