//! Tests of the messages about invalid models and data, as a user sees them. Each message is a snapshot with the name of its test case.

use super::shell::{Shell, snapshot};

/// Runs `cembra check model.cem` on an invalid model, and compares the output with the snapshot `name`.
fn check(name: &str, model: &str) {
    let outcome = Shell::new().file("model.cem", model).run(&["check", "model.cem"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (Some(1), ""), "{name}");
    snapshot!(name, outcome);
}

/// Runs `cembra eval model.cem FILE` on a model and data that do not fit each other, and compares the output with the snapshot `name`.
fn eval(name: &str, model: &str, file: &str, data: &[u8], more: &[&str]) {
    let shell = Shell::new().file("model.cem", model).file(file, data);
    let args: Vec<&str> = ["eval", "model.cem", file].iter().chain(more).copied().collect();
    let outcome = shell.run(&args);
    assert_eq!(outcome.status, Some(1), "{name}");
    snapshot!(name, outcome);
}

#[test]
fn names() {
    check("unknown_operator", "input price: f64\noutput root = sqrtt(price)\n");
    check("unknown_operator_far_from_all", "output y = frobnicate(1)\n");
    check("unknown_parameter", "input x: f64\noutput y = where(x > 0, x, other=0)\n");
    check("name_defined_twice", "input a: f64\nlet b = a * 2\nlet b = a * 3\noutput y = b\n");
    check("name_used_before_its_definition", "input a: f64\noutput y = d + 1\nlet d = a * 2\n");
    check("output_named_like_an_input", "input a: f64\noutput a = a + 1\n");
    check("reserved_name", "input text: text\noutput y = text\n");
}

#[test]
fn forms() {
    check("unclosed_bracket", "input a: f64\noutput y = (a + 1) * (a - 2\n");
    check("chained_comparison", "input x: f64\noutput inside = 0.0 < x < 1.0\n");
    check("comparisons_joined_by_a_sign", "input a: f64\noutput y = a > 18 & a < 30\noutput z = a < 1 | a > 9\n");
    check("operators_of_other_languages", "input a, b: bool\noutput x = a && b\noutput y = a ? 1 : 2\noutput z = !a\n");
    check("bad_literals", "output a = 7x\noutput b = 3000000000i32\noutput c = 1e999\noutput d = \"open\n");
    check("too_deep", &format!("input a: f64\noutput y = {}a{}\n", "(".repeat(300), ")".repeat(300)));
    check("no_output", "input a: f64\nlet b = a + 1\n");
    check("wrong_number_of_arguments", "input a: f64\noutput y = math.pow(a)\noutput z = sqrt(a, 2)\n");
    check(
        "several_problems_at_once",
        "input a: f31\nlet b = foo(1, 2)\noutput y = 1 < 2 < 3\noutput z = late * 7x\nlet late = 1\n",
    );
    let long = format!("input a: f64\noutput y = {}sqrtt(a){}\n", "a + ".repeat(100), " + a".repeat(100));
    check("problem_in_a_long_line", &long);
}

#[test]
fn types() {
    check("type_mismatch", "input x: f64?\ninput name: text\noutput y = x * 2 + name\n");
    check("no_common_type", "input x: f64\noutput y = if x > 0 then \"positive\" else 0\n");
    check("number_as_a_condition", "input n: i32\noutput y = if n then 1 else 2\n");
    check("mask_and_number", "input x: f64\noutput y = (x > 0) + 1\n");
    check("field_of_a_number", "input x: f64\noutput y = x.0\n");
    check("unknown_type", "input x: double\ninput y: float32\noutput z = x + y\n");
    check("missing_input_types", "input a: f32\noutput y = a * rate + a / hours\n");
    check("untyped_output", "output y = missing\n");
    let shell = Shell::new().file("model.cem", "input a: f32\noutput y = a\n");
    snapshot!("type_other_than_declared", shell.run(&["check", "model.cem", "--types", "a=i64"]));
}

#[test]
fn warnings() {
    let model = "numbers f32; input cents: i64\ninput rate: f64?\nlet spare = raet\noutput net = cents * 0.9\noutput y = rate == missing\n";
    let shell = Shell::new().file("model.cem", model);
    let told = shell.run(&["check", "model.cem"]);
    assert_eq!(told.status, Some(0));
    snapshot!("warnings", told);
    let silenced = shell.run(&["check", "model.cem", "-A", "warnings", "-D", "warnings"]);
    assert_eq!((silenced.status, silenced.stderr.as_str()), (Some(0), ""));
    let denied = shell.run(&["check", "model.cem", "--allow", "unused-let", "--deny", "lost-digits"]);
    assert_eq!((denied.status, denied.stdout.as_str()), (Some(1), ""));
    snapshot!("denied_warnings", denied);
    let by_underscores = shell.run(&["check", "model.cem", "-A", "unused_let", "-D", "lost_digits"]);
    assert_eq!((by_underscores.status, &by_underscores.stderr), (denied.status, &denied.stderr));
    let for_programs = shell.run(&["check", "model.cem", "--format", "json", "-D", "warnings", "-A", "similar-name"]);
    assert_eq!((for_programs.status, for_programs.stderr.as_str()), (Some(1), ""));
    snapshot!("warnings_as_json", for_programs);
    // Of what is wrong already, no warning is told.
    check("warnings_beside_an_error", "input rate: f64?\nlet spare = 1\noutput y = raet == missing\n");
    let shell = shell.file("wrong.cem", "input rate: f64\nlet spare = 1\noutput y = raet * rate\n");
    snapshot!("warnings_beside_an_error_as_json", shell.run(&["check", "wrong.cem", "--format", "json"]));
    snapshot!("unknown_warning", shell.run(&["check", "model.cem", "--deny", "unused_lets"]));
    // A test is looked at as far as the model is right.
    let tests = "test 'a' { rate = 'x', cent = 1 } => { nett = 1 }\ntest 'b' { cents = 1 } => error 'bracket'\n";
    let shell =
        shell.file("tests.cem", format!("input cents: i64\ninput rate: f64?\noutput net = cents * raet\n{tests}"));
    let found = shell.run(&["check", "tests.cem", "--deny", "warnings"]).stderr;
    let said: Vec<&str> = found.lines().filter(|line| line.starts_with("warning[unfit-test]")).collect();
    assert_eq!(
        said,
        [
            "warning[unfit-test]: input `rate` is f64?, and the test has `\"x\"`",
            "warning[unfit-test]: the model has no input `cent`",
            "warning[unfit-test]: the model has no output `nett`"
        ],
        "{found}"
    );
    // Commands that compute tell the same, beside their results, unless they are to be quiet.
    let shell = shell
        .file("half.cem", "numbers f32; input n: i64\noutput y = n * 0.5\ntest \"half\" { n = 3 } => { y = 1.5 }\n");
    let shell = shell.file("rows.csv", "n\n3\n");
    let told = shell.run(&["check", "half.cem"]).stderr;
    assert!(told.starts_with("warning[lost-digits]: an i64 becomes an f32 here"), "{told}");
    for args in [
        &["eval", "half.cem", "rows.csv"][..],
        &["eval", "half.cem", "-s", "n=3"],
        &["test", "half.cem"],
        &["explain", "half.cem"],
        &["explain", "half.cem", "--stage", "plan", "--format", "json"],
        &["bench", "half.cem", "rows.csv"],
    ] {
        let loud = shell.run(args);
        assert_eq!((loud.status, loud.stderr.as_str()), (Some(0), told.as_str()), "{args:?}");
        let quiet = shell.run(&[args, &["--quiet"]].concat());
        assert_eq!((quiet.status, quiet.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(args[0] == "bench" || quiet.stdout == loud.stdout, "{args:?}");
    }
    // Types from the data are known: nothing is told that `check` says of inputs without a type.
    let typed = shell.run(&["eval", "-e", "numbers f32; n * 0.5", "rows.csv"]);
    assert!(typed.stderr.starts_with("warning[lost-digits]"), "{typed}");
    let tensors = "numbers f32; input a: tensor[i64, 1]; output m = tensor.mean(a, 0); output h = a * 0.5f32; output s = tensor.sum(a, 0)";
    let told = shell.run(&["check", "-e", tensors]).stderr;
    assert_eq!(told.matches("warning[lost-digits]").count(), 1, "{told}");
}

#[test]
fn evaluation() {
    let share = "input total, parts: i32\noutput share = where(total > 0, 100 + total // parts, 0)\n";
    eval("division_by_zero", share, "rows.csv", b"total,parts\n10,5\n-1,0\n9,0\n8,1\n", &[]);
    let thousands = "input x: f64\noutput n = core.to_int32(x * 1000)\n";
    eval("cast_range", thousands, "rows.csv", b"x\n1.5\n3e9\n", &["--backend", "interp"]);
    let positive = "input x, why: f64?\noutput y = core.with_assertion(x, x > 0, \"x must be positive\")\n";
    eval("assertion", positive, "rows.jsonl", b"{\"x\": 2}\n\n{\"x\": -2}\n", &[]);
    let present = "input x: f64?\noutput y = core.get_optional_value(x)\n";
    eval("value_that_is_missing", present, "rows.csv", b"id,x\n1,2\n2,\n", &["--backend", "native"]);
    let shell = Shell::new();
    snapshot!("fault_without_data", shell.run(&["eval", "-e", "10 // n", "-s", "n=0"]));
    snapshot!("input_without_a_value", shell.run(&["eval", "-e", "price * amount", "-s", "price=2"]));
}

#[test]
fn both_backends_tell_a_fault_alike() {
    let shell = Shell::new();
    for expression in ["10 // n", "core.to_int32(1e300 / n)", "with_assertion(n, n > 0, \"no\")"] {
        let run = |backend| shell.run(&["eval", "-e", expression, "-s", "n=0", "--backend", backend]);
        assert_eq!(run("interp"), run("native"));
        assert_eq!(run("interp").status, Some(1));
    }
}

#[test]
fn columns() {
    let model = "input bill_length: f64\ninput mass: f64?\noutput y = bill_length + mass\n";
    eval("column_type", model, "rows.csv", b"bill_length,mass\n39.1,3750\n39.5,heavy\n", &[]);
    eval("column_with_another_mark_of_missing", model, "rows.csv", b"bill_length,mass\n39.1,NA\n", &[]);
    eval("absent_column", model, "rows.csv", b"bil_length,mass\n39.1,3750\n", &[]);
    eval("absent_key", model, "rows.jsonl", b"{\"bill_length\": 1, \"mass\": 2}\n{\"mass\": 3}\n", &[]);
    eval("missing_for_a_plain_input", model, "rows.csv", b"bill_length,mass\n39.1,3750\n,3800\n", &[]);
    eval("number_that_is_too_large", "input n: i32\noutput y = n", "rows.json", b"[{\"n\": 3000000000}]", &[]);
    let late = format!("x\n{}oops\n", "1\n".repeat(1000));
    // The thousand results before it are of no interest here.
    eval("late_misfit", "output y = x + 1\n", "rows.csv", late.as_bytes(), &["--output", "out.csv"]);
    eval("text_column_in_a_sum", "output y = x + size\n", "rows.csv", b"x,size\n1,big\n", &[]);
}

#[test]
fn files() {
    let model = "output y = x + 1\n";
    eval("ragged_rows", model, "rows.csv", b"x,y\n1,2\n3\n", &[]);
    eval("column_twice", model, "rows.csv", b"x,y,x\n1,2,3\n", &[]);
    eval("empty_file", model, "rows.csv", b"", &[]);
    eval("text_that_is_not_utf8", "output y = name", "rows.csv", b"name\nJos\xe9\n", &[]);
    eval("broken_json", model, "rows.jsonl", b"{\"x\": 1}\n{\"x\": }\n", &[]);
    eval("json_that_is_no_rows", model, "rows.json", b"[1, 2, 3]\n", &[]);
    let shell = Shell::new().file("model.cem", model).file("latin1.cem", b"# Jos\xe9\noutput y = 1\n");
    snapshot!("unreadable_data", shell.run(&["eval", "model.cem", "nothing.csv"]));
    snapshot!("unreadable_model", shell.run(&["eval", "nothing.cem"]));
    snapshot!("expression_taken_for_a_file", shell.run(&["eval", "1 + 2"]));
    snapshot!("model_that_is_not_utf8", shell.run(&["check", "latin1.cem"]));
    snapshot!("unwritable_output", shell.run(&["eval", "-e", "1", "--output", "no/such/folder/out.csv"]));
}

#[test]
fn a_model_too_large_for_native_code() {
    let model = format!("input x: f64\noutput y = (x{})", ", x".repeat(20_000));
    let shell = Shell::new().file("model.cem", model);
    snapshot!("too_large_for_native_code", shell.run(&["eval", "model.cem", "-s", "x=1", "--backend", "native"]));
    let noted = shell.run(&["eval", "model.cem", "-s", "x=1", "--verbose"]);
    assert!(noted.status == Some(0) && noted.stdout.starts_with("y.0,y.1,"), "{noted}");
    let note = "note: the interpreter runs the model: the model exceeds the limit `native_fields` of 20000 fields";
    assert!(noted.stderr.starts_with(note), "{noted}");
    // Without a terminal and unasked, a success is silent.
    assert_eq!(shell.stdout(&["eval", "model.cem", "-s", "x=1"]), noted.stdout);
}

#[test]
fn limits_of_the_command_line_reach_every_stage() {
    let stopped = |limit: &str, model: &str| {
        let outcome = Shell::new().run(&["eval", "-e", model, "-s", "x=2", "--set-limit", limit]);
        assert_eq!(outcome.status, Some(1), "{outcome}");
        outcome.stderr.lines().next().unwrap_or_default().to_owned()
    };
    assert!(stopped("nodes=2", "x + 1").starts_with("error[limit]: the model exceeds the limit `nodes` of 2 nodes"));
    assert!(
        stopped("frame_bytes=4", "x + 1.5f64").starts_with("error[limit]: the model exceeds the limit `frame_bytes`")
    );
    let looping = "core.while_loop(x, fn(s) = s < 100, fn(s) = s * 2)";
    let ended = "the loops of one evaluation run more rounds than the limit `loop_iterations`";
    assert!(stopped("loop_iterations=4", looping).ends_with(ended));
    let enough = ["eval", "-e", looping, "-s", "x=2", "--set-limit", "loop_iterations=5"];
    assert_eq!(Shell::new().stdout(&enough), "result\n128\n");
    let text = Shell::new().file("model.cem", "input x: i32\noutput y = x");
    let refused = text.run(&["check", "model.cem", "--set-limit", "source_bytes=10"]);
    assert!(refused.stderr.starts_with("error[limit]: the model exceeds the limit `source_bytes`"), "{refused}");
    // The last one counts, and what is raised is raised.
    let deep = format!("{}1{}", "(".repeat(300), ")".repeat(300));
    let raised = ["eval", "-e", &deep, "--set-limit", "nesting=3", "--set-limit", "nesting=400"];
    assert_eq!(Shell::new().stdout(&raised), "result\n1\n");
}

#[test]
fn problems_for_programs() {
    let shell = Shell::new().file("model.cem", "input x: f64\noutput y = x + nam(1)\noutput z = \"a\" + 1\n");
    snapshot!("problems_as_json", shell.run(&["check", "model.cem", "--format", "json"]));
    snapshot!("unreadable_model_as_json", shell.run(&["explain", "nothing.cem", "--format", "json"]));
}
