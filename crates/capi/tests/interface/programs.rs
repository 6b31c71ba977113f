//! Tests of programs in C and C++, which are compiled and linked as a user does, and whose output is compared. Without a compiler, valgrind or
//! sanitizer, a test prints a note and checks nothing.

#![expect(clippy::print_stderr, reason = "a test says what it does not check")]

use compiler::native::Target;
use compiler::{Model, Options};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const DELIVERY: &str = "\
error[missing-input-type]: input `weight` has no type
 --> model:1:16
  |
1 | output price = weight * \"heavy\"
  |                ^^^^^^
  |
  = help: declare the type, as in `input weight: f64`
(missing-input-type in line 1, column 16)
weight: f64
country: text
distance: f64?
one: 7.25, CH light
0: 7.25, CH light
1: 65.00, 3 days, DE heavy
2: 5.39, 1 days, FR light
3: 28.02, 1 days, CH heavy
error[evaluation]: the model takes 3 inputs, found 1
--> delivery.cem
";

const TARIFF: &str = "\
missing-input-type in line 1: input `rates` has no type; declare the type, as in `input rates: f64`
kwh: f64
night: f64?
region: text
discounts: [f64]
287.71, saved nothing
260.35, saved 32.000000
0: 0.283750
1: missing
2: 0.300000
cancelled
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder with the libraries that cargo built for this test.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().expect("the test's own path");
    program.parent().expect("a folder").to_owned()
}

/// Returns true if the program `tool` exists; otherwise prints that nothing is checked.
fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no {tool}");
    }
    found
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {:?}\n{out}\n{err}", output.status);
    out.into_owned()
}

#[derive(Clone, Copy, PartialEq)]
enum Link {
    Shared,
    Static,
}

/// Compiles a program in C or C++ and links it. Returns its path; `None` without a compiler.
fn compiled(folder: &TempDir, source: &Path, more: &[&str], link: Link) -> Option<PathBuf> {
    let is_c = source.extension().is_some_and(|extension| extension == "c");
    let (compiler, standard) = if is_c { ("cc", "-std=c11") } else { ("c++", "-std=c++17") };
    if !has(compiler) {
        return None;
    }
    let program = folder.path().join(source.file_stem().expect("a name"));
    let mut command = Command::new(compiler);
    command.args([standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"]).arg(&program);
    command.arg("-I").arg(root().join("crates/capi/include")).arg("-I").arg(root().join("runtime/include"));
    command.arg("-I").arg(folder.path()).arg(source).args(more);
    let from = libraries();
    match link {
        Link::Shared => command.arg("-L").arg(&from).arg("-lcembra").arg(format!("-Wl,-rpath,{}", from.display())),
        Link::Static => command.arg(from.join("libcembra.a")).args(["-lpthread", "-ldl", "-lm"]),
    };
    succeed(&mut command);
    Some(program)
}

fn example(name: &str) -> PathBuf {
    root().join("docs/examples/c").join(name)
}

#[test]
fn the_examples_print_what_they_should() {
    for (name, expected) in [("delivery.c", DELIVERY), ("tariff.cpp", TARIFF)] {
        for link in [Link::Shared, Link::Static] {
            let folder = TempDir::new().expect("a folder");
            let Some(program) = compiled(&folder, &example(name), &[], link) else { continue };
            assert_eq!(succeed(&mut Command::new(program)), expected);
        }
    }
}

#[test]
fn the_guide_begins_with_a_program() {
    let page = fs::read_to_string(root().join("docs/guide/c.md")).expect("the chapter");
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
        rest.split_once("```").expect("its end").0.to_owned()
    };
    let (includes, body) =
        block("cpp").split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("two parts");
    let cpp = format!("{includes}\n#include <cstdio>\nint main() {{\n{body}std::printf(\"%g\\n\", *total);\n}}\n");
    for (name, text) in [("first.c", block("c")), ("second.cpp", cpp)] {
        let folder = TempDir::new().expect("a folder");
        let source = folder.path().join(name);
        fs::write(&source, text).expect("written");
        let Some(program) = compiled(&folder, &source, &[], Link::Shared) else { continue };
        assert_eq!(succeed(&mut Command::new(program)), "2.5\n", "{name}");
    }
}

#[test]
fn the_guide_shows_how_structs_go_in() {
    let page = fs::read_to_string(root().join("docs/guide/c-structs.md")).expect("the chapter");
    let blocks: Vec<&str> =
        page.split("```c\n").skip(1).map(|block| block.split("```").next().expect("an end")).collect();
    let model = "input items: [{price: f64, count: i64, sku: text}]; sum(items.price * items.count)";
    let (members, call) = (blocks[0], blocks[1]);
    let text = format!(
        "#include \"cembra_compiler.h\"\n#include <stdio.h>\n#include <string.h>\n{members}int main(void) {{\n\
         const char *text = \"{model}\";\ncembra_program *program; cembra_session *session; cembra_value output;\n\
         cembra_error *error = cembra_compile((cembra_text){{ text, strlen(text) }}, NULL, &program);\n\
         if (error || (error = cembra_session_new(program, &session))) return 1;\n{call}\
         if (error) return 2;\nprintf(\"%g\\n\", output.as.f64);\n\
         cembra_session_free(session);\ncembra_program_free(program);\nreturn 0;\n}}\n"
    );
    let cpp = format!(
        "#include \"cembra.hpp\"\n#include <cstdio>\n{members}\
         struct order {{ bool urgent; item first; }};\n\
         static const cembra_member order_members[] = {{ CEMBRA_STRUCT_MEMBER(order, first, item_members), \
         CEMBRA_MEMBER(order, urgent, CEMBRA_KIND_BOOL) }};\n\
         int main() {{\ncembra::program program(\"input order: {{urgent: bool, first: {{price: f64, weight: f64?}}}}; \
         {model} + (order.first.price & (order.urgent == true))\");\ncembra::session session(program);\n\
         std::vector<item> all = {{ {{2.5, 4, cembra::text_of(\"a\"), {{}}}}, {{4, 3, cembra::text_of(\"b\"), {{true, 1}}}} }};\n\
         order one{{true, {{0.25, 1, {{}}, {{}}}}}};\n\
         auto total = session.evaluate({{cembra::structure(one, order_members), cembra::list(all, item_members)}})[0].as_f64();\n\
         std::printf(\"%g\\n\", *total);\n}}\n"
    );
    for (name, text, expected) in [("structs.c", text, "22\n"), ("structs.cpp", cpp, "22.25\n")] {
        let folder = TempDir::new().expect("a folder");
        let source = folder.path().join(name);
        fs::write(&source, text).expect("written");
        let Some(program) = compiled(&folder, &source, &[], Link::Shared) else { continue };
        assert_eq!(succeed(&mut Command::new(program)), expected, "{name}");
    }
}

#[test]
fn the_examples_leave_no_memory_behind() {
    if !has("valgrind") {
        return;
    }
    for (name, expected) in [("delivery.c", DELIVERY), ("tariff.cpp", TARIFF)] {
        let folder = TempDir::new().expect("a folder");
        let Some(program) = compiled(&folder, &example(name), &[], Link::Shared) else { continue };
        let mut valgrind = Command::new("valgrind");
        // The thread that waits for deadlines, and tables of the library, live as long as the process: they are reachable.
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
        valgrind.arg(format!("--suppressions={}", root().join("crates/capi/tests/valgrind.supp").display()));
        assert_eq!(succeed(valgrind.arg(program)), expected);
    }
}

#[test]
fn the_examples_touch_no_memory_that_is_not_theirs() {
    let probe = TempDir::new().expect("a folder");
    let empty = probe.path().join("empty.c");
    fs::write(&empty, "int main(void) { return 0; }\n").expect("written");
    let mut command = Command::new("cc");
    command.arg("-fsanitize=address").arg(&empty).arg("-o").arg(probe.path().join("empty"));
    if !command.output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no compiler with an address sanitizer");
        return;
    }
    for (name, expected) in [("delivery.c", DELIVERY), ("tariff.cpp", TARIFF)] {
        let folder = TempDir::new().expect("a folder");
        let Some(program) = compiled(&folder, &example(name), &["-fsanitize=address,undefined"], Link::Shared) else {
            continue;
        };
        assert_eq!(succeed(&mut Command::new(program)), expected);
    }
}

/// A C program with a model in two versions: compiled ahead of time, and compiled at run time. Both must give the same results, and one token must
/// end the evaluations of both.
const BOTH: &str = r#"
#include "cembra_compiler.h"
#include "parcel.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    char text[4096];
    FILE *file = fopen(argv[argc - 1], "rb");
    if (file == NULL) return 2;
    cembra_text source = { text, fread(text, 1, sizeof text, file) };
    fclose(file);
    cembra_program *program;
    cembra_session *session;
    if (cembra_compile(source, NULL, &program) || cembra_session_new(program, &session)) return 3;
    cembra_field field;
    size_t price = 0;
    while (cembra_program_output(program, price, &field) && strncmp(field.name.ptr, "price", field.name.len) != 0) price++;
    cembra_program_free(program);

    parcel_evaluator *evaluator;
    if (parcel_new(&evaluator) != CEMBRA_OK) return 4;
    parcel_input ahead = { .weight = 2.5, .country = { "CH", 2 } };
    parcel_output made;
    if (parcel_evaluate(evaluator, &ahead, &made) != CEMBRA_OK) return 5;
    cembra_value row[5] = {
        { .kind = CEMBRA_KIND_F64, .present = true, .as.f64 = 2.5 }, { .kind = CEMBRA_KIND_F32, .present = false },
        { .kind = CEMBRA_KIND_TEXT, .present = true, .as.text = { "CH", 2 } }, { .kind = CEMBRA_KIND_BOOL, .present = true },
        { .kind = CEMBRA_KIND_I64, .present = false },
    };
    cembra_value outputs[4];
    if (cembra_session_evaluate(session, row, 5, outputs, 4)) return 6;
    if (memcmp(&made.price, &outputs[price].as.f64, sizeof made.price) != 0) return 7;
    printf("%.3f\n", made.price);

    cembra_cancellation *token = cembra_cancellation_new();
    cembra_evaluator_set_cancellation(parcel_base(evaluator), token);
    if (cembra_session_set_cancellation(session, token)) return 8;
    cembra_cancellation_cancel(token);
    cembra_error *error = cembra_session_evaluate(session, row, 5, outputs, 4);
    cembra_fault first, second;
    if (parcel_evaluate(evaluator, &ahead, &made) != CEMBRA_FAULT || !cembra_evaluator_fault(parcel_base(evaluator), &first)) return 9;
    if (!cembra_error_fault(error, &second) || first.kind != second.kind || first.kind != CEMBRA_FAULT_CANCELLED) return 10;
    printf("%.*s\n", (int)cembra_fault_name(second.kind).len, cembra_fault_name(second.kind).ptr);
    cembra_error_free(error);
    cembra_cancellation_free(token);
    cembra_session_free(session);
    parcel_free(evaluator);
    return 0;
}
"#;

#[test]
fn a_model_ahead_of_time_runs_beside_the_compiler() {
    let model = root().join("docs/examples/ahead-of-time/parcel.cem");
    let text = fs::read_to_string(&model).expect("the example");
    let object = Model::parse(&text).and_then(|parsed| parsed.object("parcel", &Target::host(), &Options::default()));
    let object = object.expect("an object file");
    for link in [Link::Shared, Link::Static] {
        let folder = TempDir::new().expect("a folder");
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("written");
        write("parcel.o", object.bytes());
        write("parcel.h", object.header().as_bytes());
        write("both.c", BOTH.as_bytes());
        let file = folder.path().join("parcel.o");
        let more = [file.to_str().expect("a path of UTF-8")];
        let Some(program) = compiled(&folder, &folder.path().join("both.c"), &more, link) else { continue };
        let printed = succeed(Command::new(program).arg(&model));
        assert_eq!(printed.lines().last(), Some("cancelled"), "{printed}");
    }
}
