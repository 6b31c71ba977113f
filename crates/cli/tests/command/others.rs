//! Tests of the commands `check`, `explain`, `ops`, `bench`, `fuzz` and `completions`.

use super::shell::{Shell, example, snapshot};

#[test]
fn check_tells_what_goes_in_and_out() {
    let shell = Shell::new();
    assert_eq!(
        shell.stdout(&["check", &example("quadratic.cem")]),
        "input a: f32\ninput b: f64\ninput c: f64\noutput first: f64?\noutput second: f64?\n"
    );
    assert_eq!(
        shell.stdout(&["check", "-e", "(x, y == \"a\")", "--types", "x=i64?,y=text", "--format", "json"]),
        r#"{
  "inputs": [
    {
      "name": "x",
      "type": "i64?"
    },
    {
      "name": "y",
      "type": "text"
    }
  ],
  "outputs": [
    {
      "name": "result",
      "type": "(i64?, unit?)"
    }
  ],
  "warnings": []
}
"#
    );
}

#[test]
fn explain_shows_the_stages() {
    let shell = Shell::new();
    let quadratic = example("quadratic.cem");
    snapshot!("explain_expr", shell.stdout(&["explain", &quadratic, "--stage", "expr"]));
    let small = ["explain", "-e", "input x: f64; output y = where(x > 0, x * 2 + 1, -x)", "--stage"];
    let stage = |name: &str| shell.stdout(&[&small[..], &[name]].concat());
    snapshot!("explain_plan", stage("plan"));
    snapshot!("explain_passes", stage("passes"));
    let all = stage("all");
    for name in ["expr", "passes", "prepared", "plan", "clif", "asm"] {
        assert!(all.contains(&format!("== {name} ==\n{}", stage(name))), "{name}");
    }
}

#[test]
fn explain_without_a_stage_is_one_screen() {
    let shell = Shell::new();
    let text = shell.stdout(&["explain", &example("quadratic.cem")]);
    let numbers = ["runs as           machine code, optimised\n", "input a: f32\n", "output first: f64?\n", " bytes\n"];
    for line in numbers.into_iter().filter(|_| cfg!(target_arch = "x86_64")) {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    // What models without arrays do not go through is not offered.
    let stages = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("--stage "));
        lines.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(stages(&text), ["expr", "passes", "prepared", "plan", "lanes", "clif", "asm", "all"]);
    let arrays = shell.stdout(&["explain", "-e", "input x: [f64]; math.sum(x * x)"]);
    assert_eq!(stages(&arrays), ["expr", "passes", "prepared", "arrays", "lanes", "all"]);
    assert!(arrays.contains("array program     1 step (1 sweep, "), "{arrays}");
    // Many inputs with long types.
    let name = |at: usize| format!("input_with_a_long_name_{at}");
    let types = (0..50).map(|at| {
        format!("input {}: (f64, (i32, text?), (f32?, f32?, f32?, f32?, f32?, f32?, f32?, f32?))\n", name(at))
    });
    let sum: Vec<String> = (0..50).map(|at| format!("{}.0", name(at))).collect();
    let large = Shell::new().file("m.cem", types.collect::<String>() + &sum.join(" + "));
    let text = large.stdout(&["explain", "m.cem"]);
    assert!(text.lines().count() <= 40 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("..."), "{text}");
    assert!(text.contains("\nand 42 more inputs, which `cembra check` shows\n"), "{text}");
    assert!(text.contains("nodes             248 as written, "), "{text}");
}

#[test]
fn explain_without_a_stage_tells_programs_numbers() {
    let shell = Shell::new();
    let told = |model: &str| {
        let json = shell.stdout(&["explain", "-e", model, "--format", "json"]);
        serde_json::from_str::<serde_json::Value>(&json).expect("it is JSON")
    };
    let scalar = told("input x: f64; x * (1 + 1)");
    assert_eq!((&scalar["inputs"][0]["type"], &scalar["outputs"][0]["name"]), (&"f64".into(), &"result".into()));
    assert_eq!((&scalar["written_nodes"], &scalar["steps"]), (&4.into(), &1.into()));
    assert!(scalar["changed_by"].as_array().is_some_and(|passes| passes.contains(&"fold".into())), "{scalar}");
    if cfg!(target_arch = "x86_64") {
        assert_eq!((&scalar["backend"], &scalar["tier"]), (&"native".into(), &"optimised".into()));
        assert!(scalar["code_bytes"].as_u64().is_some_and(|bytes| (1..4096).contains(&bytes)), "{scalar}");
    }
    let arrays = told("input x: [f64]; math.sum(x)");
    assert!(arrays["arrays"].as_str().is_some_and(|counts| counts.starts_with("Array program: ")), "{arrays}");
    assert_eq!(arrays.get("steps"), None);
}

#[test]
fn explain_stops_where_it_is_told_to() {
    let shell = Shell::new();
    let text = shell.stdout(&["explain", "-e", "1 + 2 * 3", "--stage", "prepared", "--stop-after", "types"]);
    assert!(text.contains("math.multiply"), "{text}");
    let text = shell.stdout(&["explain", "-e", "1 + 2 * 3", "--stage", "prepared"]);
    assert!(!text.contains("math.multiply"), "{text}");
    let json = shell.stdout(&["explain", "-e", "1 + 2 * 3", "--stop-after", "fold", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json.as_object().expect("an object").keys().collect::<Vec<_>>(), ["expr", "passes", "prepared"]);
    assert_eq!(json["expr"], "output result = 1 + 2 * 3\n");
}

#[test]
fn wheres_are_branches_in_the_machine_code() {
    let shell = Shell::new();
    let model = ["explain", "-e", "where(x > 0.0, exp(x), sin(x))", "--types", "x=f64"];
    let clif = shell.stdout(&[&model[..], &["--stage", "clif"]].concat());
    assert!(clif.matches("brif").count() >= 2, "{clif}");
    let asm = shell.stdout(&[&model[..], &["--stage", "asm"]].concat());
    // What instructions are for, with line and column.
    if cfg!(target_arch = "x86_64") {
        for note in ["; entry, inputs, outputs\n", "; where  (1:1)\n", "; math.exp  (1:16)\n"] {
            assert!(asm.contains(note), "{note} is not in\n{asm}");
        }
    }
    if cfg!(target_arch = "x86_64") {
        let labels: Vec<&str> = asm.lines().filter(|line| line.starts_with('L')).collect();
        assert!(labels.len() >= 2, "{asm}");
        for label in labels {
            let target = format!(" {}", label.trim_end_matches(':'));
            assert!(asm.lines().any(|line| line.contains("  j") && line.ends_with(&target)), "{label} in\n{asm}");
        }
    }
}

#[test]
fn ops_finds_operators_by_every_name() {
    let shell = Shell::new();
    let detail = shell.stdout(&["ops", "math.floor_divide"]);
    snapshot!("ops_floor_divide", &detail);
    for name in ["M.math.floor_divide", "//", "floor_divide"] {
        assert_eq!(shell.stdout(&["ops", name]), detail, "{name}");
    }
    // The same of durations is listed behind it.
    let detail = shell.stdout(&["ops", "math.floordiv"]);
    let both = shell.stdout(&["ops", "floordiv"]);
    assert!(both.starts_with(&detail) && both[detail.len()..].trim_start().starts_with("duration.floordiv "), "{both}");
    let list = shell.stdout(&["ops"]);
    assert!(list.lines().any(|line| line.starts_with("core._plus ") && line.contains(" x + y ")), "{list}");
    assert!(list.lines().any(|line| line.starts_with("math.add ") && line.contains(" add ")), "{list}");
    // Building blocks that no model can name are not listed.
    assert!(!list.contains("_pow_half"), "{list}");
}

#[test]
fn ops_finds_operators_by_tokens_aliases_and_parts_of_names() {
    let shell = Shell::new();
    let names = |word: &str| {
        let text = shell.stdout(&["ops", word]);
        // Operators in full first, then an empty line and the others of a list.
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with(' '));
        lines.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("??"), ["core.presence_or"]);
    assert_eq!(shell.stdout(&["ops", "??"]), shell.stdout(&["ops", "|"]));
    assert!(shell.stdout(&["ops", "??"]).contains("x | y, x ?? y"));
    assert_eq!(names("+"), ["math.pos", "core._plus"]);
    assert_eq!(names("-"), ["math.subtract", "math.neg"]);
    // A part of names, one of a short name only, and a name that is a part of others.
    assert_eq!(names("s_with"), ["strings.starts_with", "strings.ends_with"]);
    let round = names("round");
    assert!(round[0] == "core._round" && round.contains(&"math.round".to_owned()), "{round:?}");
    let minimum = names("minimum");
    assert_eq!(minimum[0], "math.minimum");
    let nothing = shell.run(&["ops", "no_such_part"]);
    assert!(nothing.stderr.contains("there is no operator `no_such_part`"), "{}", nothing.stderr);
}

#[test]
fn bench_measures_both_backends() {
    let shell = Shell::new().file("rows.csv", "x\n1\n2\n3\n");
    let table = shell.stdout(&["bench", "-e", "x * 2 + 1", "rows.csv"]);
    assert!(table.contains("interpreter") && table.contains("native"), "{table}");
    assert!(table.ends_with("medians of 15 rounds\nrows: 3 of rows.csv\n"), "{table}");
    // Rows that cannot be read, and those whose evaluation fails, end the run or are left out.
    let shell = shell.file("holes.csv", "x\n1\nq\n0\n5\n");
    let failing = ["bench", "-e", "input x: i64; 10 // x", "holes.csv"];
    assert!(shell.run(&failing).stderr.contains("expected i64, found `q`"), "{}", shell.run(&failing));
    let left_out = shell.stdout(&[&failing[..], &["--on-error", "skip"]].concat());
    assert!(left_out.ends_with("rows: 2 of holes.csv, without 2 that fail\n"), "{left_out}");
    let random = shell.stdout(&["bench", "-e", "input x: i32; 10 // x", "--seed", "7"]);
    let rows = random.lines().last().expect("a line");
    assert!(
        rows.starts_with("rows: ") && rows.contains(" random from seed 7 (numbers from -10 to 10, 30 % of "),
        "{random}"
    );
    assert!(rows.ends_with(" that fail)"), "{random}");
    let json = shell.stdout(&["bench", "-e", "x // y", "--types", "x=i32,y=i32?", "--format", "json"]);
    let records: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let records = records.as_array().expect("a list");
    let named: Vec<_> = records.iter().map(|one| (one["subject"].as_str(), one["metric"].as_str())).collect();
    let expected: Vec<_> = ["interpreter", "native"]
        .into_iter()
        .flat_map(|subject| ["us_prepare", "us_compile", "ns_per_row"].map(|metric| (Some(subject), Some(metric))))
        .collect();
    assert_eq!(named, expected);
    assert!(records.iter().all(|one| one["min"].as_f64() <= one["median"].as_f64()), "{json}");
    let limited = shell.stdout(&["bench", "-e", "x * k", "rows.csv", "-s", "k=2", "--limit", "2"]);
    assert!(limited.ends_with("rows: 2 of rows.csv\n"), "{limited}");
    let given = shell.stdout(&["bench", "-e", "input x, y: i64; x // y", "-s", "y=3", "--limit", "9"]);
    assert!(given.contains("rows: 9 random from seed 1 "), "{given}");
    let untyped = shell.run(&["bench", "-e", "x + 1"]);
    assert!(untyped.stderr.contains("`--types x=f64`"), "{untyped}");
}

#[test]
fn bench_takes_arrays_lists_and_dictionaries() {
    let requests = "{\"x\": [1, 2], \"items\": [{\"v\": 1, \"n\": null}], \"rates\": {\"CH\": 2}}\n\
                    {\"x\": [], \"items\": [], \"rates\": {}}\n";
    let model = "input x: [f64], items: [{v: f64, n: i32?}], rates: dict[text, f64], key: text, c: {a: f64}?\n\
                 output y = sum(x) + sum(items.v) * lookup(key, rates, 1.0) + (c.a ?? 0.0)\n";
    let shell = Shell::new().file("m.cem", model).file("rows.jsonl", requests);
    let of_data = shell.stdout(&["bench", "m.cem", "rows.jsonl", "-s", "key=\"CH\""]);
    assert!(of_data.contains("native") && of_data.ends_with("rows: 2 of rows.jsonl\n"), "{of_data}");
    let random = shell.stdout(&["bench", "m.cem", "--limit", "50"]);
    assert!(random.contains("rows: 50 random from seed 1 ") && random.contains("20 elements in lists"), "{random}");
    let one = shell.stdout(&["bench", "-e", "input x: [f64]; sum(x)", "--limit", "3", "--format", "json"]);
    let records: serde_json::Value = serde_json::from_str(&one).expect("it is JSON");
    assert!(
        records
            .as_array()
            .expect("a list")
            .iter()
            .all(|one| one["median"].as_f64() > Some(0.0) || one["metric"] == "us_compile"),
        "{one}"
    );
    // What no random values are of is asked for.
    let edge = shell.run(&["bench", "-e", "input by: mapping, x: [f64]; math.sum(x, into=by)"]);
    assert!(edge.stderr.contains("input `by` has no value"), "{edge}");
    let wrong = shell.run(&["bench", "m.cem", "-s", "x=\"a\""]);
    assert!(wrong.stderr.contains("the input `x` is"), "{wrong}");
}

#[test]
fn fuzz_sums_up_on_its_last_line() {
    let shell = Shell::new();
    let report = shell.stdout(&["fuzz", "--programs", "5", "--seed", "7"]);
    let last = report.lines().last().expect("a line");
    assert!(last.starts_with("5 programs, ") && last.contains(" 0 mismatches, "), "{last}");
    assert_eq!(report, shell.stdout(&["fuzz", "--programs", "5", "--seed", "7"]));
}

#[test]
fn completions_know_the_commands() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish"] {
        let script = shell.stdout(&["completions", name]);
        assert!(script.contains("explain") && script.contains("keep-inputs"), "{name}");
    }
}
