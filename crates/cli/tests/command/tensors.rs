//! Tests of models with tensors: NumPy arrays as inputs and outputs, messages about invalid arrays, and the examples.

use super::shell::{Shell, example};
use std::fs;

/// Returns the bytes of a `.npy` file of NumPy: little-endian, in row-major order.
fn npy(descr: &str, extents: &[usize], data: &[u8]) -> Vec<u8> {
    let shape: String = extents.iter().map(|extent| format!("{extent},")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape})}}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

pub(crate) fn f64s(extents: &[usize], elements: impl IntoIterator<Item = f64>) -> Vec<u8> {
    npy("<f8", extents, &elements.into_iter().flat_map(f64::to_le_bytes).collect::<Vec<u8>>())
}

fn f32s(extents: &[usize], elements: impl IntoIterator<Item = f32>) -> Vec<u8> {
    npy("<f4", extents, &elements.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>())
}

const PRODUCT: &str = "input a: tensor[f64, 2], b: tensor[f64, 2], by: f64\n\
                       output c(\"i,j\") = by * a(\"i,k\") * b(\"k,j\")\noutput total = tensor.sum(c)\n";

fn product() -> Shell {
    Shell::new()
        .file("m.cem", PRODUCT)
        .file("a.npy", f64s(&[2, 2], [1.0, 2.0, 3.0, 4.0]))
        .file("b.npy", f64s(&[2, 1], [0.5, f64::INFINITY]))
}

#[test]
fn arrays_come_from_files_and_go_into_files() {
    let shell = product();
    let given = ["eval", "m.cem", "--input", "a=a.npy", "--input", "b=b.npy", "-s", "by=2"];
    let with = |more: &[&'static str]| given.iter().chain(more).copied().collect::<Vec<&str>>();
    assert_eq!(shell.stdout(&given), "c: f64 [2, 1]\n[[inf],\n [inf]]\ntotal: f64 = inf\n");
    assert_eq!(
        shell.stdout(&with(&["--format", "json"])),
        "{\"c\":[[\"Infinity\"],[\"Infinity\"]],\"total\":\"Infinity\"}\n"
    );
    assert_eq!(shell.stdout(&with(&["--only", "total"])), "total: f64 = inf\n");
    shell.stdout(&with(&["--output", "c.npz"]));
    shell.stdout(&with(&["--output", "c.npy", "--only", "c"]));
    // What was written is read: names and all.
    let read = "input c: tensor[f64, 2], total: f64; output d = tensor.transpose(c) / total";
    assert_eq!(shell.stdout(&["eval", "-e", read, "c.npz"]), "d: f64 [1, 2]\n[[nan, nan]]\n");
    // What the command line gives replaces what the archive has.
    let given = ["eval", "-e", read, "c.npz", "--input", "c=a.npy", "-s", "total=2"];
    assert_eq!(shell.stdout(&given), "d: f64 [2, 2]\n[[0.5, 1.5],\n [1, 2]]\n");
    let read = "input c: tensor[f64, 2]; output least = tensor.min(c)";
    assert_eq!(shell.stdout(&["eval", "-e", read, "c.npy"]), "least: f64 = inf\n");
}

#[test]
fn what_is_wrong_with_arrays_is_said_and_nothing_is_written() {
    let shell = product()
        .file("vector.npy", f64s(&[2], [1.0, 2.0]))
        .file("three.npy", f64s(&[3, 1], [1.0, 2.0, 3.0]))
        .file("half.npy", npy("<f2", &[2, 2], &[0; 8]))
        .file("cut.npy", &f64s(&[2, 2], [1.0, 2.0, 3.0, 4.0])[..90])
        .file("rows.csv", "a,b\n1,2\n");
    let refused = |more: &[&str]| {
        let args: Vec<&str> = ["eval", "m.cem", "-s", "by=1", "-o", "out.npz"].iter().chain(more).copied().collect();
        let outcome = shell.run(&args);
        assert_ne!(outcome.status, Some(0), "{args:?}");
        assert!(!shell.path("out.npz").exists(), "{args:?}");
        outcome.stderr
    };
    let with = |b: &str| refused(&["--input", "a=a.npy", "--input", &format!("b={b}")]);
    for (stderr, said) in [
        (with("vector.npy"), "input `b` is tensor[f64, 2], but the array is tensor[f64, 1]"),
        (with("three.npy"), "the label `k` has 2 indices in one place and 3 in another"),
        (with("half.npy"), "elements of NumPy's type `<f2` are not supported"),
        (with("cut.npy"), "bytes do not match an array of shape [2, 2] and type `<f8`"),
        (with("rows.csv"), "this is not a `.npy` file"),
        (with("none.npy"), "cannot open"),
        (refused(&["--input", "a=a.npy"]), "there is no array for the input `b` (tensor[f64, 2])"),
        (refused(&["a.npy"]), "this file has one array, but 2 inputs of the model need one"),
        (refused(&["rows.csv"]), "a tensor must be in a NumPy file, but this file is of another kind"),
        (refused(&["--input", "d=a.npy"]), "`--input`: the model has no input `d`"),
        (refused(&["--input", "a=a.npy", "--input", "a=a.npy"]), "input `a` is given twice"),
        (refused(&["-s", "a=1"]), "input `a` is tensor[f64, 2], but `-s` gives only scalars"),
        (refused(&["--keep-all"]), "leave `--keep-all` out: it applies to rows, but a model with tensors has no rows"),
        (refused(&["--format", "csv"]), "`--format` must be table, json, jsonl, npy or npz"),
        (refused(&["--format", "npy"]), "a `.npy` file holds one array, but the model has 2 outputs"),
    ] {
        assert!(stderr.contains(said), "{stderr}, not {said}");
    }
    let rows = shell.run(&["eval", "-e", "input x: f64; x", "--input", "x=a.npy"]);
    assert!(rows.stderr.contains("the model has no tensor among its inputs"), "{}", rows.stderr);
}

#[test]
fn tensors_without_elements_are_written_with_their_lists() {
    for (extents, json) in [
        ("(2, 0)", "[[],[]]"),
        ("(0, 2)", "[]"),
        ("(0,)", "[]"),
        ("(2, 3, 0)", "[[[],[],[]],[[],[],[]]]"),
        ("(1, 2, 0, 5)", "[[[],[]]]"),
        ("(1048576, 0)", ""),
    ] {
        let model = format!("input x: tensor[f64, 1]; output y = tensor.reshape(x, {extents})");
        let shell = Shell::new().file("x.npy", f64s(&[0], []));
        let made = shell.stdout(&["eval", "-e", &model, "x.npy", "--format", "json"]);
        match json {
            "" => assert_eq!(made.len(), "{\"y\":[".len() + 3 * 1_048_576 - 1 + "]}\n".len()),
            json => assert_eq!(made, format!("{{\"y\":{json}}}\n")),
        }
        assert!(shell.stdout(&["eval", "-e", &model, "x.npy"]).ends_with("]\n[]\n"));
    }
    // No memory is needed for such a tensor, and the text of its lists would never end.
    let shell = Shell::new().file("x.npy", f64s(&[0], []));
    let model = "input x: tensor[f64, 1]; output y = tensor.broadcast(x, (1000000000000, 0))";
    let outcome = shell.run(&["eval", "-e", model, "x.npy", "--format", "json"]);
    assert_eq!((outcome.status, &*outcome.stdout), (Some(1), ""));
    assert!(
        outcome.stderr.contains("output `y` has 1000000000000 empty lists, which are too many to write"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn errors_of_archives_name_arrays_and_inputs() {
    let shell = product().file("by.npy", f64s(&[], [2.0]));
    let with = ["eval", "m.cem", "--input", "a=a.npy", "--input", "b=b.npy"];
    shell.stdout(&[&with[..], &["-s", "by=1", "--only", "c", "-o", "c.npz"]].concat());
    let outcome = shell.run(&["eval", "-e", "input c: tensor[f64, 1]; output d = c", "c.npz"]);
    assert!(
        outcome.stderr.starts_with("error[array-type]: input `c` is tensor[f64, 1], but the array is tensor[f64, 2]\n"),
        "{}",
        outcome.stderr
    );
    let outcome = shell.run(&["eval", "-e", "input c: tensor[f64, 2], e: tensor[f64, 1]; output d = c + e", "c.npz"]);
    let said = "error[absent-array]: there is no array for the input `e` (tensor[f64, 1])\n--> c.npz\n";
    assert!(outcome.stderr.starts_with(said), "{}", outcome.stderr);
    // The elements of an array in the archive are of a type that tensors do not have.
    let mut bytes = fs::read(shell.path("c.npz")).expect("an archive");
    let at = bytes.windows(3).position(|bytes| bytes == b"<f8").expect("a header");
    bytes[at + 1] = b'c';
    fs::write(shell.path("complex.npz"), &bytes).expect("written");
    let outcome = shell.run(&["eval", "-e", "input c: tensor[f64, 2]; output d = c", "complex.npz"]);
    assert!(!outcome.stderr.contains("column") && outcome.stderr.contains("array `c`: "), "{}", outcome.stderr);
}

/// The outputs of a model with a tensor are written as the same JSON object as a row of a model without tensors.
#[test]
fn outputs_are_the_json_of_a_row() {
    let shell = Shell::new().file("x.npy", f64s(&[2], [1.0, f64::NAN]));
    let outputs =
        "output y = k * 2.0; output none = if k > 5.0 then k; output list = [1.5, k]; output pair = {a: k, b: \"é\"}
        output d = date\"2026-11-26\"; output t = 90s; output odd = inf * k; output holds = k > 0.5";
    let row = shell.stdout(&["eval", "-e", &format!("input k: f64; {outputs}"), "-s", "k=1", "--format", "jsonl"]);
    let with = format!("input k: f64, x: tensor[f64, 1]; {outputs}; output z = x");
    for format in ["json", "jsonl"] {
        let made = shell.stdout(&["eval", "-e", &with, "--input", "x=x.npy", "-s", "k=1", "--format", format]);
        let (same, tensor) = made.rsplit_once(",\"z\":").expect("the last output");
        assert_eq!(format!("{same}}}\n"), row);
        assert_eq!(tensor, "[1.0,\"NaN\"]}\n");
    }
}

/// Texts, optional values and masks can be inputs and outputs of a model with tensors.
#[test]
fn other_values_are_given_and_shown_too() {
    let shell = Shell::new().file("x.npy", f64s(&[2], [1.0, 2.5]));
    let model = "input x: tensor[f64, 1], name: text, bonus: f64?
        output y = x * strings.length(name) + (bonus ?? 0.5)
        output label = strings.upper(name)
        output big = tensor.sum(x) > 3.0
        output rest = bonus * 2.0";
    let with = ["eval", "-e", model, "x.npy", "-s", "name=ada"];
    let text = "y: f64 [2]\n[3.5, 8]\nlabel: text = \"ADA\"\nbig: unit? = present\nrest: f64? = missing[f64]\n";
    assert_eq!(shell.stdout(&with), text);
    let json = "{\"y\":[5.0,9.5],\"label\":\"ADA\",\"big\":true,\"rest\":4.0}\n";
    assert_eq!(shell.stdout(&[&with[..], &["-s", "bonus=2", "--format", "json"]].concat()), json);
    let outcome = shell.run(&[&with[..], &["--only", "label", "--format", "npy"]].concat());
    assert!(outcome.stderr.contains("output `label` is text, which a NumPy file cannot hold"), "{}", outcome.stderr);
    let outcome = shell.run(&["eval", "-e", model, "x.npy"]);
    assert!(
        outcome.stderr.starts_with("error[absent-array]: there is no array for the input `name` (text)"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn evaluations_end_when_their_time_is_over() {
    let shell = Shell::new().file("x.npy", f64s(&[1], [0.5]));
    // A million millions of millions of elements, which need no memory.
    let long = "input x: tensor[f64, 1]; output y = tensor.sum(exp(tensor.broadcast(x, (1000000, 1000000, 1000000))))";
    let outcome = shell.run(&["eval", "-e", long, "x.npy", "--time-limit", "0.05"]);
    assert_eq!((outcome.status, &*outcome.stdout), (Some(1), ""));
    assert_eq!(
        outcome.stderr,
        "error[time-limit]: the evaluation takes longer than the limit of 0.05 s\n |\n = help: raise the limit: `--time-limit SECONDS`\n"
    );
    // Their digits take seconds.
    let wide = "input x: tensor[f64, 1]; output y = tensor.broadcast(x, (200000, 100))";
    let outcome = shell.run(&["eval", "-e", wide, "x.npy", "--time-limit", "0.3", "-o", "y.json"]);
    assert_eq!(outcome.status, Some(1));
    assert!(outcome.stderr.contains("error[time-limit]"), "{}", outcome.stderr);
    assert!(!shell.path("y.json").exists());
    let short = "input x: tensor[f64, 1]; output y = 2.0 * x";
    let given = ["eval", "-e", short, "x.npy", "--time-limit", "1e6"];
    assert_eq!(shell.stdout(&given), "y: f64 [1]\n[1]\n");
    // Rows likewise, whatever happens to those that fail.
    let rows = "input x: i64; core.while_loop(x, fn(x) = x > 0i64, fn(x) = 1i64 + x % 1000i64)";
    for more in [&[][..], &["--on-error", "missing"]] {
        let given = ["eval", "-e", rows, "-s", "x=1", "--set-limit", "loop_iterations=1000000000000"];
        let outcome = shell.run(&[&given[..], &["--time-limit", "0.05"], more].concat());
        assert_eq!(outcome.status, Some(1));
        assert!(
            outcome.stderr.contains("error[time-limit]: the evaluation takes longer than the limit of 0.05 s"),
            "{}",
            outcome.stderr
        );
    }
    assert_eq!(shell.stdout(&["eval", "-e", "x + 1", "-s", "x=1", "--time-limit", "1e6"]), "result\n2\n");
    for wrong in ["0", "-1", "soon", "nan", "1e300"] {
        let outcome = shell.run(&["eval", "-e", "1", &format!("--time-limit={wrong}")]);
        assert_eq!(outcome.status, Some(2), "{wrong}");
        assert!(outcome.stderr.contains("expected a number of seconds above 0"), "{}", outcome.stderr);
    }
}

#[test]
fn inputs_with_defaults_may_be_left_out() {
    let shell = Shell::new().file("x.npy", f64s(&[2], [1.0, 10.0]));
    let model = "input x: tensor[f64, 1], by: f64? = 2; output y = x * by";
    assert_eq!(shell.stdout(&["eval", "-e", model, "x.npy"]), "y: f64 [2]\n[2, 20]\n");
    assert_eq!(shell.stdout(&["eval", "-e", model, "x.npy", "-s", "by=3"]), "y: f64 [2]\n[3, 30]\n");
    let wrong = shell.run(&["eval", "-e", model, "x.npy", "-s", "by=true"]);
    assert!(wrong.stderr.contains("`-s by=true` is not a valid f64"), "{}", wrong.stderr);
    let declared = "input x: tensor[f64, 1]\ninput by: f64? = 2.0\noutput y: tensor[f64, 1]\n";
    assert_eq!(shell.stdout(&["check", "-e", model]), declared);
    assert!(
        shell.stdout(&["explain", "-e", model]).starts_with("input x: tensor[f64, 1] of [64]\ninput by: f64? = 2.0\n")
    );
}

#[test]
fn models_with_tensors_are_checked_and_explained() {
    let shell = product();
    assert_eq!(
        shell.stdout(&["check", "m.cem"]),
        "input a: tensor[f64, 2]\ninput b: tensor[f64, 2]\ninput by: f64\noutput c: tensor[f64, 2]\noutput total: f64\n"
    );
    let wrong = shell.run(&["check", "-e", "input a: tensor[f64, 2]; output c(\"i\") = a(\"i,j\") * 2.0"]);
    assert_eq!(
        wrong.stderr,
        "error[labels]: the label `j` is only in one factor, and not in the target\n --> <expression>:1:42\n  |\n\
         1 | input a: tensor[f64, 2]; output c(\"i\") = a(\"i,j\") * 2.0\n  |                                          ^^^^^^^^\n  |\n  \
         = help: sum over the label before, by `tensor.sum` in a model and `einsum` in Rust, or add it to the target\n"
    );
    let shown = shell.stdout(&["explain", "m.cem", "--extents", "a=8x4", "--extents", "b=4x2"]);
    assert!(
        shown.starts_with("input a: tensor[f64, 2] of [8, 4]\ninput b: tensor[f64, 2] of [4, 2]\ninput by: f64\n"),
        "{shown}"
    );
    assert!(shown.contains("steps"), "{shown}");
    let wrong = shell.run(&["explain", "m.cem", "--extents", "a=8"]);
    assert!(wrong.stderr.contains("`--extents` gives `a` 1 axes, but its type is tensor[f64, 2]"), "{}", wrong.stderr);
    let built = shell.run(&["build", "m.cem", "-o", "m.o"]);
    assert!(built.stderr.contains("error[tensors]"), "{}", built.stderr);
}

/// Compares the data file of an example with data that are made here. With `CEMBRA_REWRITE`, the file is written instead.
fn check_data(shell: &Shell, types: &str, arrays: &[(&str, Vec<u8>)], file: &str) {
    let copies: String = arrays.iter().map(|(name, _)| format!("output \"{name}\" = {name}\n")).collect();
    fs::write(shell.path("copy.cem"), format!("input {types}\n{copies}")).expect("written");
    let mut args = vec!["eval".to_owned(), "copy.cem".to_owned(), "-o".to_owned(), "made.npz".to_owned()];
    for (name, bytes) in arrays {
        fs::write(shell.path(name), bytes).expect("written");
        args.extend(["--input".to_owned(), format!("{name}={name}")]);
    }
    shell.stdout(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let made = fs::read(shell.path("made.npz")).expect("there");
    if std::env::var_os("CEMBRA_REWRITE").is_some() {
        fs::write(example(file), &made).expect("written");
    }
    assert!(
        made == fs::read(example(file)).expect("there"),
        "{file} is out of date: run this test with CEMBRA_REWRITE=1"
    );
}

#[test]
fn softmax_regression_gets_nearer() {
    let shell = Shell::new();
    // Twelve points in three clouds, not all of which a plane can tell apart.
    let class = |point: usize| (point * 5 + point / 4) % 3;
    let x = (0..12).flat_map(|point| {
        let near = [[1.0, 0.0], [-1.0, 1.0], [0.0, -1.5]][class(point)];
        [near[0] + f64::from(point as u8 % 5) / 4.0 - 0.5, near[1] - f64::from(point as u8 % 3) / 2.0 + 0.5]
    });
    let y = (0..12).flat_map(|point| [0, 1, 2].map(|of| f64::from(u8::from(class(point) == of))));
    let arrays = [
        ("x", f64s(&[12, 2], x)),
        ("y", f64s(&[12, 3], y)),
        ("w", f64s(&[2, 3], [0.0; 6])),
        ("bias", f64s(&[3], [0.0; 3])),
    ];
    let types = "x: tensor[f64, 2], y: tensor[f64, 2], w: tensor[f64, 2], bias: tensor[f64, 1]";
    check_data(&shell, types, &arrays, "softmax.npz");
    let (model, data) = (example("softmax.cem"), example("softmax.npz"));
    let first = shell.stdout(&["eval", &model, &data, "-s", "rate=1", "--only", "loss"]);
    let loss = |told: &str| told.trim_start_matches("loss: f64 = ").trim_end().parse::<f64>().expect("a number");
    // Weights of zeros know nothing of three classes.
    assert!((loss(&first) - 3_f64.ln()).abs() < 1e-12, "{first}");
    // A step of training, whose weights are put beside the data for the next one.
    let mut losses = Vec::new();
    for name in ["x", "y", "w", "bias"] {
        assert!(shell.path(name).exists());
    }
    for _ in 0..20 {
        let given = ["--input", "x=x", "--input", "y=y", "--input", "w=w", "--input", "bias=bias", "-s", "rate=1"];
        let run = |more: &[&str]| {
            shell.stdout(&["eval", &model].iter().chain(&given).chain(more).copied().collect::<Vec<_>>())
        };
        losses.push(loss(&run(&["--only", "loss"])));
        run(&["--only", "next_w", "--format", "npy", "-o", "next_w"]);
        run(&["--only", "next_bias", "--format", "npy", "-o", "bias"]);
        fs::rename(shell.path("next_w"), shell.path("w")).expect("renamed");
    }
    assert!(losses.windows(2).all(|two| two[1] < two[0]) && losses[19] < 0.3, "{losses:?}");
}

#[test]
fn tensors_times_vectors() {
    let shell = Shell::new();
    let arrays = [
        ("a", f32s(&[2, 3, 4], (0..24_u8).map(f32::from))),
        ("u", f32s(&[2], [1.0, -1.0])),
        ("v", f32s(&[3], [1.0, 0.5, 2.0])),
        ("w", f32s(&[4], [1.0, 0.0, 0.0, 1.0])),
    ];
    let types = "a: tensor[f32, 3], u: tensor[f32, 1], v: tensor[f32, 1], w: tensor[f32, 1]";
    check_data(&shell, types, &arrays, "ttv.npz");
    assert_eq!(
        shell.stdout(&["eval", &example("ttv.cem"), &example("ttv.npz")]),
        "along_i: f32 [3, 4]\n[[-12, -12, -12, -12],\n [-12, -12, -12, -12],\n [-12, -12, -12, -12]]\n\
         along_j: f32 [2, 4]\n[[18, 21.5, 25, 28.5],\n [60, 63.5, 67, 70.5]]\n\
         along_k: f32 [2, 3]\n[[3, 11, 19],\n [27, 35, 43]]\nalong_all: f32 = -84\n"
    );
}

/// The limit of bytes applies to the arrays of all files together, and a file is not in memory in addition to its array.
#[test]
fn arrays_of_all_files_count_together() {
    let file = f64s(&[100_000], std::iter::repeat_n(1.0, 100_000));
    let shell = Shell::new().file("a.npy", &file).file("b.npy", &file);
    let model = "input a: tensor[f64, 1]\ninput b: tensor[f64, 1]\noutput s = tensor.sum(a * b)\n";
    let shell = shell.file("m.cem", model);
    let args = ["eval", "m.cem", "--input", "a=a.npy", "--input", "b=b.npy", "--set-limit"];
    assert_eq!(shell.stdout(&[&args[..], &["array_bytes=100000000"]].concat()), "s: f64 = 100000\n");
    for more in [&args[..], &["eval", "m.cem", "a.npy", "--input", "b=b.npy", "--set-limit"]] {
        let refused = shell.run(&[more, &["array_bytes=1500000"]].concat());
        assert!(refused.stderr.contains("the arrays exceed the limit of 700000 bytes"), "{refused}");
    }
}

#[test]
fn the_plan_of_tensors_is_shown_with_warnings() {
    let explain = ["explain", "-e", "numbers f32; input a: tensor[i64, 1]; output y = a / 3"];
    let shown = Shell::new().run(&explain);
    assert!(shown.status == Some(0) && shown.stdout.contains("output y: tensor[f32, 1]"), "{shown}");
    assert!(shown.stderr.starts_with("warning[lost-digits]: an i64 becomes an f32 here"), "{shown}");
    let quiet = Shell::new().run(&[&explain[..], &["--quiet"]].concat());
    assert_eq!((quiet.stdout, quiet.stderr.as_str()), (shown.stdout, ""));
}

#[test]
fn tiles_are_cut_as_the_model_says() {
    let text = "tile i, j = 2\ninput a: tiled[f64, \"i,j\"]\nb(\"i,j\") = a(\"i,k\") * a(\"k,j\")\ntile k = 2\n";
    // The tiles off the diagonal are small.
    let elements = [2.0, 0.0, 1e-9, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0];
    let shell = Shell::new().file("m.cem", text).file("a.npy", f64s(&[3, 3], elements));
    let given = ["eval", "m.cem", "--input", "a=a.npy"];
    let with = |more: &[&'static str]| given.iter().chain(more).copied().collect::<Vec<&str>>();
    let whole = "b: f64 [3, 3]\n[[4, 0, 5e-9],\n [0, 4, 0],\n [0, 0, 9]]\n";
    let screened = "b: f64 [3, 3]\n[[4, 0, 0],\n [0, 4, 0],\n [0, 0, 9]]\n";
    assert_eq!(shell.stdout(&given), whole);
    assert_eq!(shell.stdout(&with(&["--threshold", "1e-8"])), screened);
    assert_eq!(shell.stdout(&with(&["--threshold", "1e-8", "--threads", "1", "--most-bytes", "1K"])), screened);
    let noted = shell.run(&with(&["--threshold", "1e-8", "--verbose"])).stderr;
    let product = noted.lines().find(|line| line.contains("product a(")).expect("a product");
    // Two tiles of four, of 4 elements and of 1; two products of eight. The turned operand is held beside them.
    assert!(product.split_whitespace().rev().take(8).eq(["1", "40", "40", "18", "8", "2", "4", "2"]), "{noted}");
    shell.stdout(&with(&["--threshold", "1e-8", "-o", "b.npy"]));
    let read = "input b: tensor[f64, 2]; tensor.sum(b)";
    assert_eq!(shell.stdout(&["eval", "-e", read, "b.npy"]), "result: f64 = 17\n");
    // A checkpoint is written in tiles, and read again by a model that cuts its tensors alike.
    assert_eq!(shell.stdout(&with(&["--threshold", "1e-8", "-o", "out.tiles"])), "");
    let again = "tile i, j = 2; input b: tiled[f64, \"i,j\"]; c(\"i,j\") = b(\"i,j\") + b(\"i,j\")";
    let sum = "c: f64 [3, 3]\n[[8, 0, 0],\n [0, 8, 0],\n [0, 0, 18]]\n";
    assert_eq!(shell.stdout(&["eval", "-e", again, "--input", "b=out.tiles"]), sum);
    assert_eq!(shell.stdout(&["eval", "-e", &again.replace('b', "d"), "--input", "d=out.tiles:b"]), sum);
    let refused = |args: &[&str]| {
        let outcome = shell.run(args);
        assert_ne!(outcome.status, Some(0), "{args:?}");
        outcome.stderr
    };
    for (stderr, said) in [
        (refused(&["eval", "-e", &again.replace("= 2", "= 3"), "--input", "b=out.tiles"]), "retile"),
        (
            refused(&["eval", "-e", &again.replace('b', "d"), "--input", "d=out.tiles"]),
            "= help: use `--input d=out.tiles:b` for another tensor: the checkpoint has `b`",
        ),
        (refused(&["eval", "-e", again, "--input", "b=out.tiles:c"]), "the checkpoint has no tensor `c`"),
        (refused(&with(&["--most-bytes", "60"])), "takes"),
        (refused(&with(&["--most-bytes", "many"])), "expected a number of bytes"),
        (refused(&with(&["--threshold=-1"])), "a number of at least 0"),
        (refused(&["eval", "-e", read, "b.npy", "--threshold", "1"]), "the model does not cut tensors into tiles"),
    ] {
        assert!(stderr.contains(said), "{said} in {stderr}");
    }
}

#[test]
fn ranks_have_the_digits_of_one_process_and_resume_what_is_there() {
    let text = "tile i, j, k = 2\ninput a: tiled[f64, \"i,k\"]\ninput b: tiled[f64, \"k,j\"]\n\
                output c(\"i,j\") = a(\"i,k\") * b(\"k,j\")\noutput e(\"i,j,k\") = c(\"i,j\") * c(\"j,k\")\noutput s = c(\"i,i\").sum()\n";
    let elements = |by: f64| (0..49).map(move |at| (f64::from(at) * by).sin()).collect::<Vec<f64>>();
    let shell = Shell::new().file("m.cem", text).file("a.npy", f64s(&[7, 7], elements(0.7)));
    let shell = shell.file("b.npy", f64s(&[7, 7], elements(1.3)));
    let given = ["eval", "m.cem", "--input", "a=a.npy", "--input", "b=b.npy"];
    let with = |more: &[&'static str]| given.iter().chain(more).copied().collect::<Vec<&str>>();
    let alone = shell.stdout(&given);
    for ranks in ["1", "2", "3", "5"] {
        assert_eq!(shell.stdout(&[&given[..], &["--ranks", ranks]].concat()), alone, "{ranks}");
    }
    assert_eq!(shell.stdout(&with(&["--ranks", "3", "--threads", "6", "--most-bytes", "10K"])), alone);
    // One error, and one table of steps.
    let failed = shell.run(&with(&["--ranks", "3", "--most-bytes", "20"]));
    assert_eq!((failed.status, failed.stderr.matches("error[limit]").count()), (Some(1), 1), "{failed}");
    let noted = shell.run(&with(&["--ranks", "3", "--verbose"])).stderr;
    assert_eq!(noted.lines().filter(|line| line.contains("product a(")).count(), 1, "{noted}");
    // The second output has no memory. What four ranks kept of the first two read, and leave out.
    let failed = shell.run(&with(&["--ranks", "4", "-o", "out.tiles", "--resume", "--most-bytes", "600"]));
    assert!(failed.status == Some(1) && failed.stderr.contains("error[limit]"), "{failed}");
    let noted = shell.run(&with(&["--ranks", "2", "-o", "out.tiles", "--resume", "--verbose"])).stderr;
    assert!(!noted.contains("product a(") && noted.contains("product c("), "{noted}");
    let read = "tile i, j, k = 2; input e: tiled[f64, \"i,j,k\"]; output sum = tensor.sum(e)";
    let sum = shell.stdout(&["eval", "-e", read, "--input", "e=out.tiles"]);
    shell.stdout(&with(&["-o", "whole.tiles"]));
    assert_eq!(shell.stdout(&["eval", "-e", read, "--input", "e=whole.tiles"]), sum);
    // All is there already.
    let noted = shell.run(&with(&["-o", "out.tiles", "--resume", "--verbose"])).stderr;
    assert_eq!(steps(&noted).len(), 1, "{noted}");
    // Checkpoints of other inputs, of another model, and one that was written without `--resume`.
    let swapped = ["eval", "m.cem", "--input", "a=b.npy", "--input", "b=a.npy", "-o", "out.tiles", "--resume"];
    let model = ["eval", "-e", read, "--input", "e=whole.tiles", "-o", "out.tiles", "--resume"];
    for args in [&swapped[..], &model, &with(&["-o", "whole.tiles", "--resume"])] {
        let other = shell.run(args);
        assert!(other.status == Some(1) && other.stderr.contains("the checkpoint belongs to another model"), "{other}");
    }
    // A finished output whose elements were changed, or whose file is gone.
    let files = || fs::read_dir(shell.path("out.tiles")).expect("a checkpoint").filter_map(Result::ok);
    let large = files().map(|file| file.path()).filter(|path| path.extension().is_none_or(|end| end != "json"));
    let path = large.max_by_key(|path| path.metadata().map_or(0, |data| data.len())).expect("a file of tiles");
    let mut bytes = fs::read(&path).expect("tiles");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, bytes).expect("other tiles");
    let changed = shell.run(&with(&["-o", "out.tiles", "--resume"]));
    assert!(changed.status == Some(1) && changed.stderr.contains("error[wire]"), "{changed}");
    fs::remove_file(&path).expect("a file less");
    let gone = shell.run(&with(&["-o", "out.tiles", "--resume"]));
    assert!(gone.status == Some(1) && gone.stderr.contains("the file does not exist"), "{gone}");
    for (args, said) in [
        (with(&["--resume"]), "must be used with a checkpoint"),
        (with(&["--ranks", "0"]), "invalid value '0'"),
        (
            vec!["eval", "-e", "input a: tensor[f64, 1]; a + a", "--ranks", "2"],
            "the model does not cut tensors into tiles",
        ),
    ] {
        let refused = shell.run(&args);
        assert!(refused.status == Some(2) && refused.stderr.contains(said), "{said} in {refused}");
    }
}

/// A model in tiles that has other inputs and outputs than tensors, too.
const BESIDE: &str = "tile i, j, k = 2
input a: tiled[f64, \"i,j\"], n: f64?, s: text, few: f64? = 2.0, xs: [f64] = []
output b(\"i,j\") = (n ?? 1.0) * few * a(\"i,k\") * a(\"k,j\")
output total = tensor.sum(b)
output said = strings.join(s, if total > 100.0 then \": much\" else \": little\")
output share = n * total + sum(xs)
output rows = array.of_tensor(tensor.sum(a, 1))
";

#[test]
fn values_beside_tiles_are_given_and_printed_as_beside_dense_tensors() {
    let dense = BESIDE.replace("tile i, j, k = 2\n", "").replace("tiled[f64, \"i,j\"]", "tensor[f64, 2]");
    let shell = Shell::new().file("m.cem", BESIDE).file("dense.cem", dense);
    let shell = shell.file("a.npy", f64s(&[3, 3], (1..10).map(f64::from)));
    let of = |model: &str, more: &[&str]| shell.run(&[&["eval", model, "--input", "a=a.npy"], more].concat());
    let none: &[&str] = &[];
    for given in [
        &["-s", "s=x"][..],
        &["-s", "s=x", "-s", "n=1.5"],
        &["-s", "s=x", "-s", "n=0.25", "-s", "few=0.5", "-s", "xs=[0.5, 2.0]"],
    ] {
        for form in [none, &["--format", "json"], &["--only", "said"]] {
            let given = [given, form].concat();
            let wanted = of("dense.cem", &given);
            assert_eq!((wanted.status, wanted.stderr.as_str()), (Some(0), ""), "{wanted}");
            for more in [none, &["--ranks", "1"], &["--ranks", "2"], &["--ranks", "4"], &["--threshold", "1e-12"]] {
                let made = of("m.cem", &[&given[..], more].concat());
                assert_eq!((made.stdout, made.stderr), (wanted.stdout.clone(), String::new()), "{given:?} {more:?}");
            }
        }
    }
    let given = ["-s", "s=x", "-s", "n=1.5"];
    let with = |more: &[&'static str]| of("m.cem", &[&given[..], more].concat());
    assert!(with(&["--verbose"]).stderr.contains("product"), "the tensors are in tiles");
    for (more, said) in [
        (
            &["-o", "out.tiles"][..],
            "output `said` is text, which a checkpoint cannot hold: choose tensors with `--only`",
        ),
        (&["-o", "out.npz"], "output `said` is text, which a NumPy file cannot hold"),
        (&["-s", "n=many"], "`-s n=many` is not a valid f64?"),
    ] {
        let refused = of("m.cem", &[&["-s", "s=x"], more].concat());
        assert!(refused.status == Some(2) && refused.stderr.contains(said), "{refused}");
    }
    let left_out = of("m.cem", none);
    assert!(left_out.stderr.contains("there is no array for the input `s` (text)"), "{left_out}");
    // Tensors and floats alone, in a checkpoint.
    assert_eq!(with(&["-o", "out.tiles", "--only", "b", "--ranks", "2"]).status, Some(0));
    let again = "tile i, j = 2; input b: tiled[f64, \"i,j\"]; output sum = tensor.sum(b)";
    let sum = shell.stdout(&["eval", "-e", again, "--input", "b=out.tiles"]);
    assert_eq!(sum.replace("sum", "total"), with(&["--only", "total"]).stdout);
    for _ in 0..2 {
        let kept = with(&["-o", "kept.tiles", "--resume", "--only", "b"]);
        assert_eq!((kept.status, kept.stderr.as_str()), (Some(0), ""), "{kept}");
    }
    assert_eq!(shell.stdout(&["eval", "-e", again, "--input", "b=kept.tiles:b"]), sum);
    // Steps do not depend on `s`, which is left out.
    let explain =
        |more: &[&str]| shell.run(&[&["explain", "m.cem", "--extents", "i=4", "--extents", "j=4"], more].concat());
    for more in [none, &["-s", "n=1.5", "-s", "s=x"]] {
        let shown = explain(more);
        assert!(
            shown.status == Some(0) && shown.stdout.contains("\nat most ") && shown.stdout.contains("product"),
            "{shown}"
        );
        assert!(
            shown.stdout.contains("input n: f64?\ninput s: text\ninput few: f64? = 2.0\ninput xs: [f64] = []\n"),
            "{shown}"
        );
    }
    let chosen = "tile i = 2; input a: tiled[f64, \"i\"], s: text; output b = if s == \"x\" then a else exp(a)";
    let shown = shell.run(&["explain", "-e", chosen, "--extents", "i=4"]);
    assert!(
        shown.stderr.contains("the steps depend on the value of `s`") && shown.stderr.contains("`-s s=..`"),
        "{shown}"
    );
    assert_eq!(shell.run(&["explain", "-e", chosen, "--extents", "i=4", "-s", "s=x"]).status, Some(0));
}

/// A model in tiles that computes a polynomial of a square matrix.
const POLYNOMIAL: &str = "tile i, j, k = 2\ninput a: tiled[f64, \"i,j\"], by: f64\nlet s(\"i,j\") = a(\"i,k\") * a(\"k,j\")\n\
                          p(\"i,j\") = by * s(\"i,j\") + s(\"i,k\") * a(\"k,j\")\noutput t = p(\"i,i\").sum()\n";

/// Returns the lines of a table of steps, as the command prints it, split into fields.
fn steps(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().skip_while(|line| !line.starts_with("step ") && !line.starts_with(" step "));
    lines.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn the_steps_in_tiles_are_shown_before_there_are_data() {
    let elements = [2.0, 0.0, 1e-9, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0];
    let shell = Shell::new().file("m.cem", POLYNOMIAL).file("a.npy", f64s(&[3, 3], elements));
    let explain = |more: &[&'static str]| shell.stdout(&[&["explain", "m.cem"], more].concat());
    // 100 tiles of four elements, beside which the turned operand is held.
    let shown = explain(&["--extents", "i=20", "--extents", "j=20"]);
    let header = "input a: tiled[f64, \"i,j\"] of [20, 20]\ninput by: f64\noutput p: tensor[f64, 2]\noutput t: f64\n\n";
    assert!(shown.starts_with(header), "{shown}");
    assert_eq!(explain(&["--extents", "a=20x20"]), shown);
    let found = steps(&shown);
    let square =
        found.iter().find(|step| step.ends_with(&["100", "100", "1000", "1000", "16000", "3200", "3200", "1"]));
    assert!(square.is_some(), "{shown}");
    assert!(shown.contains("\nat most 12800 bytes at once\nAn evaluation computes at most this many tiles"), "{shown}");
    // The tiles of files and checkpoints are known.
    let of_file = explain(&["--input", "a=a.npy", "-s", "by=0.5", "--threshold", "0"]);
    let evaluated = shell.run(&["eval", "m.cem", "--input", "a=a.npy", "-s", "by=0.5", "--threshold", "0", "-v"]);
    assert_eq!(steps(&of_file), steps(&evaluated.stderr), "{of_file}");
    assert!(steps(&of_file).len() > 4 && !of_file.contains("at most this many"), "{of_file}");
    let copy = "tile i, j = 2; input b: tiled[f64, \"i,j\"]; output a = b + 0.0";
    shell.stdout(&["eval", "-e", copy, "--input", "b=a.npy", "--threshold", "1e-8", "-o", "a.tiles"]);
    let of_checkpoint = explain(&["--input", "a=a.tiles", "--threshold", "1e-8"]);
    assert!(of_checkpoint.starts_with("input a: tiled[f64, \"i,j\"] of [3, 3]\n"), "{of_checkpoint}");
    assert!(
        steps(&of_checkpoint).iter().any(|step| step.contains(&"product") && step.contains(&"2")),
        "{of_checkpoint}"
    );
    // About a tenth of the tiles.
    let filled = explain(&["--extents", "a=200x200", "--fill", "a=0.1", "--format", "json"]);
    let filled: serde_json::Value = serde_json::from_str(&filled).expect("JSON");
    let tiles: Vec<u64> =
        filled["steps"].as_array().expect("steps").iter().filter_map(|step| step["tiles"].as_u64()).collect();
    let products = filled["steps"].as_array().expect("steps").iter().find(|step| step["work"] == "product");
    let products = products.and_then(|step| step["products"].as_u64()).expect("a product");
    assert!(products.abs_diff(10_000) < 2_000 && tiles.iter().any(|tiles| (1000..10_000).contains(tiles)), "{filled}");
    assert_eq!(explain(&["--extents", "a=200x200", "--fill", "a=1"]), explain(&["--extents", "a=200x200"]));
    // A slice that ends within a tile is copied, and one that ends where tiles do is not.
    for (stop, work) in [("4", "view"), ("5", "part")] {
        let model = format!("tile i = 2; input v: tiled[f64, \"i\"]; output r = tensor.slice(v, 0, 2, {stop})");
        let sliced = shell.stdout(&["explain", "-e", &model, "--extents", "v=6"]);
        assert!(steps(&sliced).iter().any(|step| step.first() == Some(&work)), "{work}: {sliced}");
    }
    // The stage of tensors is that without tiles.
    assert!(explain(&["--stage", "tensors", "--extents", "a=20x20"]).contains("temporaries"));
}

#[test]
fn what_plans_in_tiles_cannot_be_of_is_said() {
    let shell = Shell::new().file("m.cem", POLYNOMIAL).file("a.npy", f64s(&[2, 2], [1.0; 4]));
    let bounded =
        "tile i = [0, 2, 5]; input v: tiled[f64, \"i\"], w: tensor[f64, 1]; output r = v + v; output q = w + w";
    let plain = "input a: tensor[f64, 2]; tensor.sum(a)";
    let cases: &[(&[&str], i32, &str)] = &[
        (&["m.cem"], 2, "there is no extent for the label `i` of input `a`: write `--extents i=N`"),
        (&["m.cem", "--extents", "i=4"], 2, "no extent for the label `j`"),
        (&["m.cem", "--extents", "q=4"], 2, "the model has no input or label `q`; it has"),
        (&["m.cem", "--extents", "i=4", "--extents", "i=4"], 2, "`--extents` gives `i` twice"),
        (&["m.cem", "--extents", "i=4x4", "--extents", "j=4"], 2, "gives the label `i` 2 axes"),
        (&["m.cem", "--extents", "a=4"], 2, "`--extents` gives `a` 1 axes, but its type is tiled[f64, \"i,j\"]"),
        (
            &["m.cem", "--extents", "by=4", "--extents", "a=4x4"],
            2,
            "`--extents` gives `by` 1 axes, but its type is f64",
        ),
        (&["m.cem", "--extents", "i=-4"], 2, "expected a name and extents"),
        (&["m.cem", "--extents", "a=4x5"], 1, "error["),
        (&["m.cem", "--extents", "a=4x4", "--input", "a=a.npy"], 2, "input `a` is given twice"),
        (&["m.cem", "--input", "a=a.npy", "--input", "a=a.npy"], 2, "input `a` is given twice"),
        (&["m.cem", "--input", "b=a.npy"], 2, "the model has no input `b`"),
        (&["m.cem", "--input", "a=a.npy", "--fill", "a=0.1"], 2, "input `a`: its tiles are known"),
        (&["m.cem", "--extents", "a=4x4", "--fill", "a=0.1", "--fill", "a=0.2"], 2, "`--fill` gives `a` twice"),
        (&["m.cem", "--extents", "a=4x4", "--fill", "a=1.5"], 2, "a fraction from 0 to 1"),
        (&["m.cem", "--extents", "a=4x4", "--fill", "c=0.5"], 2, "the model has no input `c`"),
        (&["m.cem", "--extents", "a=4x4", "-s", "by=many"], 2, "is not a valid f64"),
        (&["m.cem", "--extents", "a=4x4", "-s", "a=1"], 2, "`-s` gives only scalars"),
        (&["m.cem", "--extents", "a=20x20", "--most-bytes", "5000"], 1, "the limit is"),
        (&["m.cem", "--extents", "a=1000000000x1000000000"], 1, "present tiles"),
        (&["m.cem", "--extents", "a=99999999999999999999x4"], 2, "expected a name and extents"),
        (&["m.cem", "--extents", "a=18446744073709551615x18446744073709551615"], 1, "an axis has"),
        (
            &["m.cem", "--stage", "tensors", "--threshold", "1"],
            2,
            "leave `--threshold` out: it applies to a plan in tiles, but the steps of a stage do not show tiles",
        ),
        (
            &["-e", plain, "--fill", "a=0.1"],
            2,
            "leave `--fill` out: it applies to a plan in tiles, but the model does not cut tensors into tiles",
        ),
        (
            &["-e", "1.0 + 2.0", "-s", "a=0.1"],
            2,
            "leave `-s` out: it applies to a plan in tiles, but the command does not show that plan here",
        ),
        (&["-e", plain, "--extents", "a=2x2", "--extents", "a=3x3"], 2, "`--extents` gives `a` twice"),
        (
            &["-e", bounded, "--extents", "w=3", "--extents", "i=6"],
            1,
            "the label `i` has 5 indices, but 6 in input `v`",
        ),
        (&["-e", bounded], 2, "there are no extents for the input `w` (tensor[f64, 1]): write `--extents w=NxM`"),
    ];
    for (args, status, said) in cases {
        let outcome = shell.run(&[&["explain"], *args].concat());
        assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(*status), ""), "{args:?} {outcome}");
        assert!(outcome.stderr.contains(said), "{args:?}: {said} in {outcome}");
    }
    // Boundaries have extents by themselves, and axes may have no elements.
    let shown = shell.stdout(&["explain", "-e", bounded, "--extents", "w=3"]);
    assert!(shown.starts_with("input v: tiled[f64, \"i\"] of [5]\ninput w: tensor[f64, 1] of [3]\n"), "{shown}");
    let shown = shell.stdout(&["explain", "m.cem", "--extents", "a=0x0"]);
    assert!(shown.contains("at most 8 bytes at once"), "{shown}");
}
