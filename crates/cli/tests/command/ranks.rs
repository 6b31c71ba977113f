//! Tests of the command as several processes (ranks) that MPI launchers start. The environment variable `CEMBRA_MPI_LAUNCHERS` has the paths of
//! launchers, separated by colons. The MPI library of a launcher is in the folder `lib` next to the launcher's folder.

use crate::shell::Shell;
use crate::tensors::f64s;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest time for a run: ten times the time in which a failure must end all ranks. A run that takes longer hangs.
const MOST: Duration = Duration::from_secs(50);

/// Returns the paths of the launchers to test, each with the path of its MPI library.
fn launchers() -> Vec<(PathBuf, PathBuf)> {
    let listed = std::env::var_os("CEMBRA_MPI_LAUNCHERS").unwrap_or_default();
    let library = |launcher: &PathBuf| {
        let folder = launcher.parent()?.parent()?.join("lib");
        ["libmpi_abi.so.1", "libmpi.so.40"].map(|name| folder.join(name)).into_iter().find(|path| path.exists())
    };
    std::env::split_paths(&listed).filter_map(|launcher| Some((launcher.clone(), library(&launcher)?))).collect()
}

/// Starts one rank for each list of arguments. Returns how the run ended, and after how many seconds.
fn launched((launcher, library): &(PathBuf, PathBuf), shell: &Shell, ranks: &[Vec<&str>]) -> (Output, f64) {
    let mut command = Command::new(launcher);
    if library.ends_with("libmpi.so.40") {
        command.arg("--oversubscribe");
    }
    for (at, arguments) in ranks.iter().enumerate() {
        command.args(if at > 0 { &[":", "-n", "1"][..] } else { &["-n", "1"] });
        command.arg(Path::new(env!("CARGO_BIN_EXE_cembra"))).args(arguments);
    }
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    command.env("CEMBRA_MPI", library).current_dir(shell.path("."));
    let begun = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{}: {error}", launcher.display()));
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > MOST {
            child.kill().expect("a child");
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    let seconds = begun.elapsed().as_secs_f64();
    assert!(seconds < MOST.as_secs_f64(), "{}: ranks wait for one that failed: {ranks:?}", launcher.display());
    (child.wait_with_output().expect("its output"), seconds)
}

/// If one rank fails, all ranks must end. The test prints a table for its report: the kind of failure, and the seconds until all ranks had ended.
#[test]
#[ignore = "`.ci/doors` installs the launchers and runs it"]
#[expect(clippy::print_stdout, reason = "`.ci/doors` shows the table")]
fn a_rank_that_fails_ends_all() {
    const TEXT: &str = "tile i, j, k = 10\ninput h: tiled[f64, \"i,j\"]\np(\"i,j\") = h(\"i,k\") * h(\"k,j\")\n";
    let shell = Shell::new().file("p.cem", TEXT).file("bad.cem", "output y = 1 +").file("x.csv", "x\n1\n2\n");
    let shell = shell.file("h.npy", f64s(&[40, 40], (0..1600).map(f64::from)));
    let good = || vec!["eval", "p.cem", "--input", "h=h.npy", "-o", "p.npz"];
    let failing: [(&str, Vec<&str>); 5] = [
        ("no input file", vec!["eval", "p.cem", "--input", "h=none.npy", "-o", "p.npz"]),
        ("no model file", vec!["eval", "none.cem", "--input", "h=h.npy"]),
        ("a wrong model", vec!["eval", "bad.cem", "--input", "h=h.npy"]),
        ("a wrong option", vec!["eval", "p.cem", "--nothing"]),
        ("no input file, a time limit", vec!["eval", "p.cem", "--input", "h=none.npy", "--time-limit", "9"]),
    ];
    let launchers = launchers();
    assert!(!launchers.is_empty(), "`CEMBRA_MPI_LAUNCHERS` names no launcher with a library beside it");
    let mut table = String::new();
    for launcher in &launchers {
        let named = launcher.0.display();
        let (output, seconds) = launched(launcher, &shell, &[good(), good()]);
        assert!(output.status.success(), "{named}: {output:?}");
        let _ = writeln!(table, "{named}: 2 ranks, none fails: {seconds:.2} s");
        for (size, (what, arguments)) in (2..=4).flat_map(|size| failing.iter().map(move |one| (size, one))) {
            for bad in 0..size {
                let ranks: Vec<_> =
                    (0..size).map(|rank| if rank == bad { arguments.clone() } else { good() }).collect();
                let (output, seconds) = launched(launcher, &shell, &ranks);
                assert!(!output.status.success(), "{named}: rank {bad} of {size} has {what}: {output:?}");
                let _ = writeln!(table, "{named}: rank {bad} of {size} has {what}: {seconds:.2} s");
            }
        }
        // Rank 0 alone prints rows and dense results.
        let dense = "input h: tensor[f64, 2]; output s = tensor.sum(h)";
        for (arguments, lines) in [
            (vec!["eval", "-e", "x * 2", "x.csv", "--format", "csv"], "result\n2\n4\n"),
            (vec!["eval", "-e", dense, "--input", "h=h.npy"], "s: f64 = 1279200\n"),
        ] {
            let (output, _) = launched(launcher, &shell, &vec![arguments; 3]);
            assert_eq!(String::from_utf8_lossy(&output.stdout), lines, "{named}: {output:?}");
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && told.matches("computes alone").count() == 1, "{named}: {output:?}");
        }
    }
    print!("{table}");
}

#[test]
fn other_ranks_leave_rows_to_the_first() {
    let shell = Shell::new().file("x.csv", "x\n1\n2\n");
    let as_rank = |rank: &str, size: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cembra"));
        command.args(["eval", "-e", "x * 2", "x.csv", "--format", "csv"]).current_dir(shell.path("."));
        let output = command.env("PMI_RANK", rank).env("PMI_SIZE", size).output().expect("a run");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let note = "note: rank 0 of 2 computes alone: a model of rows cannot be distributed to ranks\n";
    assert_eq!(as_rank("0", "2"), (true, "result\n2\n4\n".to_owned(), note.to_owned()));
    assert_eq!(as_rank("1", "2"), (true, String::new(), String::new()));
    assert_eq!(as_rank("0", "1"), (true, "result\n2\n4\n".to_owned(), String::new()));
}

/// A launcher ends all ranks if a signal ends a rank that has not joined them, but waits if that rank exits. So a rank that fails before it joins
/// must end by a signal.
#[cfg(unix)]
#[test]
fn a_rank_that_fails_before_it_joined_ends_by_a_signal() {
    use std::os::unix::process::ExitStatusExt;
    let shell = Shell::new().file("bad.cem", "output y = 1 +");
    for arguments in [vec!["eval", "none.cem"], vec!["eval", "bad.cem"], vec!["eval", "--nothing"], vec!["nothing"]] {
        let as_one_of = |size: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cembra"));
            command.args(&arguments).current_dir(shell.path(".")).env("PMI_RANK", "1").env("PMI_SIZE", size);
            command.output().expect("a run")
        };
        let output = as_one_of("2");
        assert!(output.status.signal() == Some(9) && !output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
    let mut alone = Command::new(env!("CARGO_BIN_EXE_cembra"));
    let output = alone.args(["eval", "none.cem"]).env("PMI_RANK", "0").env("PMI_SIZE", "1").output().expect("a run");
    assert_eq!(output.status.code(), Some(1));
}
