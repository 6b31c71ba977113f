//! Compiles the hand-written limit (`limit/limit.rs`) into crates, `cembra_limit` for the processor at hand,
//! `cembra_limit_inlined` with mathematical functions of its own, and `cembra_limit_baseline` for the baseline of the
//! architecture, all fully optimised whatever the profile. The limit over columns (`limit/columns/`) becomes a crate for
//! each kind of lanes; those of vectors are compiled for processors that have them, whatever this one has.
//!
//! They are ordinary Rust libraries found by `extern crate`: one standard library, no symbol that could clash, and
//! nothing for a linker to guess. Straight-line S4 is copied from the model's text, which is Rust but for `;`.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const LIMIT: &str = "limit/limit.rs";
const COLUMNS: &str = "limit/columns";
const COLUMNS_ROOT: &str = "limit/columns/columns.rs";
const S4: &str = "workloads/S4.cem";

/// Left out where the machine at hand is not the one that is built for.
const NATIVE: &str = "-Ctarget-cpu=native";
const AVX512: &str = "-Ctarget-feature=+avx512f,+avx512dq,+avx512bw,+avx512vl,+avx2,+fma";
const AVX2: &str = "-Ctarget-feature=+avx2,+fma,+bmi1,+bmi2,+lzcnt,+popcnt";

/// The architecture that has the vectors; others are built without them.
const VECTORS: &str = "x86_64";

/// The builds: crate name, source and extra options.
const BUILDS: [(&str, &str, &[&str]); 6] = [
    ("cembra_limit", LIMIT, &[NATIVE]),
    ("cembra_limit_inlined", LIMIT, &[NATIVE, "--cfg", "inlined"]),
    ("cembra_limit_baseline", LIMIT, &[]),
    ("cembra_limit_columns_512", COLUMNS_ROOT, &[NATIVE, AVX512, "--cfg", "lanes=\"512\""]),
    ("cembra_limit_columns_256", COLUMNS_ROOT, &[AVX2, "--cfg", "lanes=\"256\""]),
    ("cembra_limit_columns_plain", COLUMNS_ROOT, &[NATIVE, "--cfg", "lanes=\"plain\""]),
];

fn main() -> Result<(), Box<dyn Error>> {
    for path in ["build.rs", LIMIT, COLUMNS, S4] {
        println!("cargo::rerun-if-changed={path}");
    }
    let out_dir = env::var("OUT_DIR")?;
    fs::write(Path::new(&out_dir).join("s4.rs"), straight_line(&fs::read_to_string(S4)?)?)?;

    let (rustc, target) = (env::var("RUSTC")?, env::var("TARGET")?);
    let (host, architecture) = (env::var("HOST")?, env::var("CARGO_CFG_TARGET_ARCH")?);
    for (name, source, options) in BUILDS {
        if architecture != VECTORS && (options.contains(&AVX512) || options.contains(&AVX2)) {
            continue;
        }
        let options = options.iter().filter(|option| host == target || **option != NATIVE);
        let status = Command::new(&rustc)
            .args(["--edition", "2024", "--crate-type", "rlib", "--crate-name", name, "--target", &target])
            .args(["-C", "opt-level=3", "-C", "codegen-units=1", "--out-dir", &out_dir, source])
            .args(options)
            .status()?;
        if !status.success() {
            return Err(format!("the limit {name} does not compile: {status}").into());
        }
    }
    println!("cargo::rustc-link-search=all={out_dir}");

    let version = Command::new(&rustc).arg("--version").output()?;
    println!("cargo::rustc-env=CEMBRA_BENCH_RUSTC={}", String::from_utf8(version.stdout)?.trim());
    Ok(())
}

/// A model made of `input`, `let` and one `output`, with no operator but those Rust writes alike, as a Rust block over
/// the array `x`.
fn straight_line(source: &str) -> Result<String, Box<dyn Error>> {
    let mut block = String::from("{\n");
    for line in source.lines() {
        if let Some(names) = line.strip_prefix("input ") {
            let names = names.strip_suffix(": f64").ok_or("S4: inputs that are not f64")?;
            writeln!(block, "let [{names}] = *x;")?;
        } else if line.starts_with("let ") {
            writeln!(block, "{line};")?;
        } else if let Some(output) = line.strip_prefix("output ") {
            let (_, expression) = output.split_once(" = ").ok_or("S4: an output without an expression")?;
            writeln!(block, "{expression}")?;
        } else if !line.is_empty() {
            return Err(format!("S4: unexpected line: {line}").into());
        }
    }
    block.push_str("}\n");
    Ok(block)
}
