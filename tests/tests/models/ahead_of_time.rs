//! Models compiled ahead of time, in programs that link with the runtime alone: the example of
//! `docs/examples/ahead-of-time` in C and in Rust gives what the interpreter gives, row by row.

use cembra::native::Target;
use cembra::{Backend, FaultKind, Model, Optional, Options, ScalarValue, Value};
use cembra_runtime::{INTERFACE_REVISION, Refusal, interface_fingerprint};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/ahead-of-time").join(name)
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The folder with the runtime as a static library and as a crate, built once. In a folder of its own, so that the crate's
/// other kind does not make Cargo build everything that depends on it again.
fn runtime() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["rustc", "--offline", "--package", "cembra-runtime", "--lib", "--crate-type", "lib,staticlib"]);
        succeed(cargo.arg("--target-dir").arg(&folder).current_dir(env!("CARGO_MANIFEST_DIR")));
        folder.join("debug")
    })
}

/// True if programs in C can be made here; says so if not.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn has_c_compiler() -> bool {
    let found = cfg!(target_os = "linux") && Command::new("cc").arg("--version").output().is_ok();
    if !found {
        println!("skipped: there is no C compiler `cc`, or the libraries of this system are not known here");
    }
    found
}

/// The model of the example, compiled with and without extensions of the instruction set, beside what it needs.
fn compiled(target: &Target) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let model = Model::parse(&fs::read_to_string(example("parcel.cem")).expect("read")).expect("a model");
    let object = model.object("parcel", target, &Options::default()).expect("an object file");
    fs::write(folder.path().join("parcel.o"), object.bytes()).expect("written");
    fs::write(folder.path().join("parcel.h"), object.header()).expect("written");
    fs::write(folder.path().join("parcel.rs"), object.rust()).expect("written");
    folder
}

type Row = (f64, Optional<f32>, &'static str, bool, Optional<i64>);

fn rows() -> Vec<Row> {
    let mut random = fastrand::Rng::with_seed(7);
    let countries = ["CH", "DE", "AT", "US", "C", "CHE", "Österreich", "\u{10FFFF}"];
    let mut row = || {
        let weight = if random.u8(..) < 20 { -random.f64() } else { random.f64() * 50.0 };
        let distance = (random.u8(..) > 60).then(|| random.f32() * 3000.0);
        let per_day = (random.u8(..) > 60).then(|| random.i64(-3..400));
        (weight, distance.into(), countries[random.usize(..countries.len())], random.bool(), per_day.into())
    };
    let mut rows: Vec<Row> = (0..2000).map(|_| row()).collect();
    rows.push((f64::INFINITY, Optional::present(f32::INFINITY), "CH", true, Optional::present(1)));
    rows.push((1e-310, Optional::present(1e-44), "DE", false, Optional::present(i64::MIN)));
    rows
}

fn word<T: Copy + ToString>(value: Optional<T>) -> String {
    value.get().map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// What the interpreter says, in the form of the example's programs.
fn expected() -> Vec<String> {
    let source = fs::read_to_string(example("parcel.cem")).expect("read");
    let options = Options::default().backend(Backend::Interpreter);
    let executor = Model::parse(&source).expect("a model").compile(&options).expect("compiled");
    let mut session = executor.session();
    let line = |(weight, distance, country, express, per_day): Row| {
        let values: [Value; 5] =
            [weight.into(), distance.get().into(), country.into(), express.into(), per_day.get().into()];
        match session.evaluate(&values) {
            Ok(outputs) => {
                let [price, zone, days, heavy] = &outputs[..] else { panic!("four outputs") };
                let (Value::Scalar(ScalarValue::Float64(price)), Value::Scalar(ScalarValue::Text(zone))) =
                    (price, zone)
                else {
                    panic!("{price} and {zone}")
                };
                let days = match days {
                    Value::Present(ScalarValue::Int64(days)) => days.to_string(),
                    _ => "-".to_owned(),
                };
                let heavy = if matches!(heavy, Value::Present(_)) { "heavy" } else { "light" };
                format!("{price} {zone} {days} {heavy}")
            }
            Err(error) => {
                let span = error.span().expect("a place");
                // The runtime alone has no words for values.
                let message = match error.fault_kind() {
                    Some(FaultKind::CastRange) => "core.cast: the value does not fit into i64".to_owned(),
                    _ => error.message(),
                };
                format!("fault {} at {}..{}: {message}", error.code(), span.start, span.end)
            }
        }
    };
    rows().into_iter().map(line).collect()
}

/// Runs a program of the example over all rows and compares what it prints: numbers by their bits.
fn check(program: &Path) {
    let mut child =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut text = String::new();
    for (weight, distance, country, express, per_day) in rows() {
        text += &format!("{weight:e} {} {country} {express} {}\n", word(distance), word(per_day));
    }
    let mut input = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).expect("written"));
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the rows are written");
    assert!(output.status.success(), "{:?}", output.status);
    let printed = String::from_utf8(output.stdout).expect("text");
    let (expected, found): (Vec<String>, Vec<&str>) = (expected(), printed.lines().collect());
    assert_eq!(found.len(), expected.len());
    let mut faults = 0;
    for (found, expected) in found.into_iter().zip(&expected) {
        let number = |line: &str| line.split(' ').next().and_then(|word| word.parse::<f64>().ok()).map(f64::to_bits);
        let rest = |line: &str| line.split_once(' ').map(|(_, rest)| rest.to_owned());
        assert_eq!(number(found), number(expected), "{found}\n{expected}");
        assert_eq!(rest(found), rest(expected));
        faults += u32::from(found.starts_with("fault"));
    }
    assert!((50..500).contains(&faults), "{faults} faults");
}

/// The example's program in C, linked with the object file of a folder.
fn linked(folder: &Path) -> PathBuf {
    let (program, runtime) = (folder.join("parcel"), runtime());
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/include");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(&program);
    cc.arg("-I").arg(&include).arg("-I").arg(folder).arg(example("main.c"));
    cc.arg(folder.join("parcel.o")).arg(runtime.join("libcembra_runtime.a"));
    succeed(cc.args(["-lpthread", "-ldl", "-lm"]));
    program
}

#[test]
fn a_program_in_c_gives_the_same() {
    if !has_c_compiler() {
        return;
    }
    for target in [Target::host(), Target::host().native_features()] {
        let folder = compiled(&target);
        check(&linked(folder.path()));
    }
}

/// A file that says that it was made for a runtime laid out otherwise is not run, though its revision is the runtime's.
#[test]
fn an_object_file_of_another_layout_is_refused() {
    if !has_c_compiler() {
        return;
    }
    let folder = compiled(&Target::host());
    let path = folder.path().join("parcel.o");
    let mut file = fs::read(&path).expect("read");
    let own = [u64::from(INTERFACE_REVISION), interface_fingerprint()].map(u64::to_ne_bytes);
    // The revision, the size of frames, and the layouts that machine code was made for.
    let is_model = |bytes: &[u8]| bytes[..4] == own[0][..4] && bytes[8..] == own[1];
    let found: Vec<usize> =
        file.windows(16).enumerate().filter(|(_, bytes)| is_model(bytes)).map(|(at, _)| at).collect();
    let [model] = found[..] else { panic!("{found:?}") };
    file[model + 8] ^= 1;
    fs::write(&path, file).expect("written");
    let output = Command::new(linked(folder.path())).stdin(Stdio::null()).output().expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && told.trim() == Refusal::Revision.message(), "{told}");
}

/// A compiler of a program in Rust that links with the runtime and these object files.
fn rustc(source: &Path, program: &Path, objects: &[PathBuf]) -> Command {
    let runtime = runtime();
    let link = |path: &Path, kind: &str| format!("{kind}{}", path.display());
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "-D", "warnings", "-o"]).arg(program).arg(source);
    rustc.arg("--extern").arg(link(&runtime.join("libcembra_runtime.rlib"), "cembra_runtime="));
    rustc.arg("-L").arg(link(&runtime.join("deps"), "dependency="));
    for object in objects {
        rustc.arg("-C").arg(link(object, "link-arg="));
    }
    rustc
}

#[test]
fn a_program_in_rust_gives_the_same() {
    let folder = compiled(&Target::host());
    let program = folder.path().join("parcel");
    fs::copy(example("main.rs"), folder.path().join("main.rs")).expect("copied");
    succeed(&mut rustc(&folder.path().join("main.rs"), &program, &[folder.path().join("parcel.o")]));
    check(&program);
}

/// Evaluators of two models, whose frames and structs are of different sizes, in one program: safe code runs each with what
/// is its own, and cannot bring them together. The modules are taken in with `include!`, beside the code that tries.
#[test]
fn evaluators_of_two_models_cannot_change_places() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let wide: String = (0..40).map(|at| format!("output y{at} = x * {at}.0 + exp(x)\n")).collect();
    let narrow = "input a: i32; input t: text?; output b = a + 1; output greeting = t ?? \"none\"";
    for (name, source) in [("wide", &*format!("input x: f64\n{wide}")), ("narrow", narrow)] {
        let object = Model::parse(source).expect("a model").object(name, &Target::host(), &Options::default());
        let object = object.expect("an object file");
        fs::write(path(&format!("{name}.o")), object.bytes()).expect("written");
        fs::write(path(&format!("{name}.rs")), object.rust()).expect("written");
        assert!(!object.rust().contains("&mut cembra_runtime::"), "{}", object.rust());
    }
    let compile = |attack: &str| {
        let program = format!(
            "mod wide {{ include!(\"wide.rs\"); }}\n\
             mod narrow {{\n    include!(\"narrow.rs\");\n    pub fn attack(a: &mut Model, b: &mut crate::wide::Model) {{\n        \
             {attack}\n        let _ = (a, b);\n    }}\n}}\n\
             fn main() {{\n    let (mut a, mut b) = (narrow::Model::new().unwrap(), wide::Model::new().unwrap());\n    \
             narrow::attack(&mut a, &mut b);\n    \
             let owned = String::from(\"hello\");\n    \
             let input = narrow::Input {{ a: 41, t: cembra_runtime::Text::new(&owned).into() }};\n    \
             let found = a.evaluate(&input).unwrap();\n    \
             assert_eq!((found.b, found.greeting.as_str()), (42, \"hello\"));\n    \
             let found = b.evaluate(&wide::Input {{ x: 0.0 }}).unwrap();\n    \
             assert_eq!((found.y0, found.y39), (1.0, 1.0));\n    \
             let token = cembra_runtime::Cancellation::new();\n    \
             a.set_cancellation(Some(token.clone()));\n    b.set_loop_rounds(7);\n    token.cancel();\n    \
             let fault = a.evaluate(&input).unwrap_err();\n    \
             assert_eq!(fault.kind(), cembra_runtime::FaultKind::Cancelled);\n}}\n"
        );
        fs::write(path("main.rs"), program).expect("written");
        let objects = [path("wide.o"), path("narrow.o")];
        rustc(&path("main.rs"), &path("main"), &objects).output().expect("the compiler runs")
    };
    let whole = compile("");
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    succeed(&mut Command::new(path("main")));
    for (attack, code) in [
        ("std::mem::swap(a, b);", "E0308"),
        ("*a = crate::wide::Model::new().unwrap();", "E0308"),
        ("std::mem::swap(a.evaluator(), b.evaluator());", "E0599"),
        ("std::mem::swap(&mut a.evaluator, &mut b.evaluator);", "E0616"),
        ("std::mem::swap(&mut a.0, &mut b.0);", "E0609"),
        ("let _ = a.evaluate(&crate::wide::Input { x: 0.0 });", "E0308"),
        ("let _ = MODEL;", "E0425"),
        (
            "struct Mine; impl cembra_runtime::ObjectFileModel for Mine { type Input<'t> = (); type Output<'t> = (); \
          fn object() -> &'static cembra_runtime::ObjectModel { Object::object() } }",
            "E0200",
        ),
        (
            "fn text(a: &mut Model) -> Output<'static> { let t = String::new(); \
          a.evaluate(&Input { a: 1, t: cembra_runtime::Text::new(&t).into() }).unwrap() } let _ = text;",
            "E0515",
        ),
    ] {
        let refused = compile(attack);
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && told.contains(&format!("error[{code}]")), "{attack}\n{told}");
    }
}

/// Links a program whose model has fields of every type, and compares their layouts and values.
#[test]
fn every_type_has_the_layout_that_the_header_says() {
    if !has_c_compiler() {
        return;
    }
    let scalars = ["unit", "bool", "i32", "i64", "u64", "f32", "f64", "date", "timestamp", "text", "bytes"];
    let mut source = String::new();
    for (at, scalar) in scalars.iter().enumerate() {
        source += &format!("input a{at}: bool\ninput b{at}: {scalar}\ninput c{at}: {scalar}?\n");
        source += &format!("output x{at} = a{at}\noutput y{at} = b{at}\noutput z{at} = c{at}\n");
    }
    source += "input pair: (bool, (f64?, text), bool)\noutput whole = pair\noutput int = pair.1\n";
    source += "output words = (\"a\", b\"\\x00\\xff\", 1)\n";
    let object = Model::parse(&source).expect("a model").object("all", &Target::host(), &Options::default());
    let object = object.expect("an object file");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("all.o"), object.bytes()).expect("written");
    fs::write(folder.path().join("all.h"), object.header()).expect("written");
    let mut body = String::new();
    for at in 0..scalars.len() {
        // The value of what is missing is unspecified: only what is present is compared as a whole.
        body += &format!(
            "in.a{at} = {at} % 2; memset(&in.b{at}, 1, sizeof in.b{at}); memset(&in.c{at}, 1, sizeof in.c{at});\n"
        );
    }
    body += "in.pair.f0 = true; in.pair.f1.f0.present = true; in.pair.f1.f0.value = 2.5;\n";
    body += "in.pair.f1.f1.ptr = \"inner\"; in.pair.f1.f1.len = 5;\n";
    body += "if (all_evaluate(evaluator, &in, &out) != CEMBRA_OK) return 2;\n";
    for at in 0..scalars.len() {
        body += &format!("if (out.x{at} != in.a{at} || memcmp(&out.y{at}, &in.b{at}, sizeof in.b{at})) return 3;\n");
        if at == 0 {
            body += "if (!out.z0.present) return 4;\n";
        } else {
            body += &format!(
                "if (!out.z{at}.present || memcmp(&out.z{at}.value, &in.c{at}.value, sizeof in.c{at}.value)) return 4;\n"
            );
        }
    }
    body +=
        "if (!out.whole.f0 || out.whole.f2 || out.whole.f1.f0.value != 2.5 || out.whole.f1.f1.len != 5) return 5;\n";
    body += "if (out.int_.f1.ptr != in.pair.f1.f1.ptr) return 6;\n";
    body += "if (out.words.f0.len != 1 || *out.words.f0.ptr != 'a' || out.words.f1.len != 2 || out.words.f1.ptr[1] != 255 \
             || out.words.f2 != 1) return 7;\n";
    let program = format!(
        "#include <string.h>\n#include \"all.h\"\nint main(void) {{\n\
         all_evaluator *evaluator;\nif (all_new(&evaluator) != CEMBRA_OK) return 1;\n\
         all_input in; memset(&in, 0, sizeof in); all_output out; memset(&out, 0, sizeof out);\n\
         {body}\
         cembra_cancellation *token = cembra_cancellation_new();\n\
         cembra_evaluator_set_cancellation(all_base(evaluator), token);\n\
         cembra_cancellation_cancel(token);\ncembra_cancellation_free(token);\n\
         cembra_fault fault; if (cembra_evaluator_fault(all_base(evaluator), &fault)) return 8;\n\
         if (all_evaluate(evaluator, &in, &out) != CEMBRA_FAULT) return 9;\n\
         if (!cembra_evaluator_fault(all_base(evaluator), &fault) || fault.kind != CEMBRA_FAULT_CANCELLED\n\
             || fault.operator_name.len != 0) return 10;\n\
         cembra_evaluator_set_cancellation(all_base(evaluator), NULL);\n\
         if (all_evaluate(evaluator, &in, &out) != CEMBRA_OK) return 11;\n\
         all_free(evaluator);\nall_free(NULL);\n\
         if (cembra_status_message(CEMBRA_REVISION).len == 0 || cembra_status_message(CEMBRA_OK).len != 0) return 12;\n\
         return 0;\n}}\n"
    );
    fs::write(folder.path().join("main.c"), program).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Werror", "-o"]).arg(folder.path().join("all"));
    cc.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/include"));
    cc.arg(folder.path().join("main.c")).arg(folder.path().join("all.o"));
    succeed(cc.arg(runtime().join("libcembra_runtime.a")).args(["-lpthread", "-ldl", "-lm"]));
    succeed(&mut Command::new(folder.path().join("all")));
}

/// Links a program whose model looks texts and numbers up, and compares what it finds with the interpreter.
#[test]
fn a_program_in_c_looks_keys_up() {
    if !has_c_compiler() {
        return;
    }
    let entry =
        |at: i64| format!("\"{}\": {:?}f64", "abc".repeat(at as usize % 4) + &(at * 37).to_string(), at as f64 / 4.0);
    let rates: Vec<String> = (0..300).map(entry).collect();
    let names: Vec<String> = (-7..200).map(|at| format!("{}: \"name {at}\"", at * at * at)).collect();
    let source = format!(
        "input k: text, n: i64\noutput rate = lookup(k, {{{}}}, -1.0)\noutput name = lookup(n, {{{}}}, \"none\")\n",
        rates.join(", "),
        names.join(", ")
    );
    let model = Model::parse(&source).expect("a model");
    let object = model.object("look", &Target::host(), &Options::default()).expect("an object file");
    let mut session = model.compile(&Options::default().backend(Backend::Interpreter)).expect("compiled").session();
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("look.o"), object.bytes()).expect("written");
    fs::write(folder.path().join("look.h"), object.header()).expect("written");
    let mut body = String::new();
    let mut found_none = 0;
    for (key, number) in (0..300).map(|at| (rates[at].split('"').nth(1).unwrap_or_default(), at as i64 * 27 - 343)) {
        for key in [key.to_owned(), format!("{key}a")] {
            let outputs = session.evaluate(&[Value::text(&*key), number.into()]).expect("no fault");
            let [Value::Scalar(ScalarValue::Float64(rate)), Value::Scalar(ScalarValue::Text(name))] = &outputs[..]
            else {
                panic!("{outputs:?}")
            };
            found_none += u32::from(*rate == -1.0);
            body += &format!("check(\"{key}\", {number}, {rate:?}, \"{name}\");\n");
        }
    }
    assert_eq!(found_none, 300);
    let program = format!(
        "#include <string.h>\n#include <stdlib.h>\n#include \"look.h\"\nstatic look_evaluator *evaluator;\n\
         static void check(const char *key, long long number, double rate, const char *name) {{\n\
         look_input in = {{ .k = {{ key, strlen(key) }}, .n = number }}; look_output out;\n\
         if (look_evaluate(evaluator, &in, &out) != CEMBRA_OK) exit(2);\n\
         if (out.rate != rate || out.name.len != strlen(name) || memcmp(out.name.ptr, name, out.name.len)) exit(3);\n}}\n\
         int main(void) {{\nif (look_new(&evaluator) != CEMBRA_OK) return 1;\n{body}look_free(evaluator);\nreturn 0;\n}}\n"
    );
    fs::write(folder.path().join("main.c"), program).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Werror", "-o"]).arg(folder.path().join("look"));
    cc.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/include"));
    cc.arg(folder.path().join("main.c")).arg(folder.path().join("look.o"));
    succeed(cc.arg(runtime().join("libcembra_runtime.a")).args(["-lpthread", "-ldl", "-lm"]));
    succeed(&mut Command::new(folder.path().join("look")));
}

#[test]
fn what_cannot_be_compiled_ahead_of_time_is_told() {
    let told = |source: &str, name: &str, target: &Target| {
        let model = Model::parse(source).expect("a model");
        let error = model.object(name, target, &Options::default()).expect_err(source);
        (error.code().to_owned(), error.diagnostics()[0].message().to_owned())
    };
    let object = |message: &str| ("object".to_owned(), message.to_owned());
    let host = Target::host();
    assert_eq!(
        told("input t: text; strings.upper(t)", "m", &host),
        object("an object file cannot hold `strings.upper`")
    );
    for name in ["", "2x", "a-b", "int", "fn", "größe"] {
        assert_eq!(
            told("input x: f64; x", name, &host),
            object(&format!("`{name}` cannot be the name of a model in C"))
        );
    }
    for (target, part) in [
        (Target::triple("i686-unknown-linux-gnu"), "64 bits"),
        (Target::triple("no-such-machine"), "no-such-machine"),
        (Target::host().feature("has_magic"), "has_magic"),
        (Target::triple("sparc64-unknown-linux-gnu"), "sparc64"),
    ] {
        let (code, message) = told("input x: f64; x", "m", &target);
        assert!(code == "object" && message.contains(part), "{code}: {message}");
    }
}
