//! Tests of the link between processes: this program starts itself with each MPI launcher that is found, and prints
//! "skipped" for a launcher that cannot start processes. Launchers are looked for in `PATH`, and at the paths in
//! `CEMBRA_MPI_LAUNCHERS`, which are separated by colons. The launcher of a Python package has its libraries in a
//! directory next to it.

#![cfg(unix)]
#![expect(clippy::print_stdout, reason = "what was skipped is said")]

use cembra_runtime::{Cancellation, FaultKind, Scalar};
use cembra_tiles::link::{Done, ExpectedMessage, Failure, Link, MessageId, Payload, Ranks, WaitPolicy, no_link};
use cembra_tiles::{
    Checkpoint, Evaluator, MOST_TILES, Options, Screening, Shape, Tile, TileMap, Tiled, Tiling, Tiling1,
};
use cembra_value::Error;
use cembra_value::tensor::{Tensor, TensorErrorKind as Kind};
use flate2::read::GzDecoder;
use serde_json::Value as Json;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The environment variable that tells a started process which test to run, such as `talk`.
const TASK: &str = "CEMBRA_MPI_TASK";

/// The environment variable with the id of the process that ran the launcher. The ranks inherit it, and so do the
/// helper processes of the launcher.
const STARTED_BY: &str = "CEMBRA_MPI_STARTED_BY";

/// The longest time that ranks may take; a launcher that takes longer is ended.
const MOST: Duration = Duration::from_secs(120);

#[test]
fn ranks_of_every_launcher_talk() -> Result<(), Error> {
    match std::env::var(TASK).as_deref() {
        Ok("talk") => return talk(),
        Ok("wrong") => return wrong(),
        Ok("abort") => return ended_by(|link| link.abort(3)),
        Ok("killed") => return ended_by(|_| kill()),
        Ok("golden") => return golden(),
        Ok("iterate") => return iterate(false),
        Ok("iterate, killed") => return iterate(true),
        _ => {}
    }
    let launchers = launchers();
    if launchers.is_empty() {
        println!("skipped: no launcher");
    }
    for launcher in &launchers {
        if !launch(launcher, 2, "", None, Path::new("true")).status.success() {
            println!("skipped: {} starts no processes here", launcher.display());
            continue;
        }
        for library in libraries(launcher) {
            let said =
                library.as_ref().map_or_else(|| "the library of its name".into(), |path| path.display().to_string());
            for ranks in [1, 2, 4] {
                let output = own(launcher, ranks, "talk", library.as_deref());
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{} with {said}: {output:?}", launcher.display());
                assert_eq!(
                    text.matches("all is well").count(),
                    ranks,
                    "{} with {said}: {output:?}",
                    launcher.display()
                );
            }
            for ranks in [1, 2, 4] {
                let output = own(launcher, ranks, "golden", library.as_deref());
                let text = String::from_utf8_lossy(&output.stdout);
                assert_eq!(text.matches("150 cases").count(), ranks, "{} with {said}: {output:?}", launcher.display());
            }
            resumed(launcher, library.as_deref());
            for task in ["abort", "killed"] {
                let output = own(launcher, 4, task, library.as_deref());
                assert!(!output.status.success(), "{} with {said}, {task}: {output:?}", launcher.display());
                assert!(no_process_is_left(), "{} with {said}, {task}", launcher.display());
            }
            println!("{} with {said}: passed", launcher.display());
        }
        // A library of the other family.
        let family = |path: &Path| path.to_string_lossy().contains(".so.40");
        let own_family = libraries(launcher).into_iter().flatten().any(|path| family(&path));
        let all = launchers.iter().flat_map(|launcher| libraries(launcher)).flatten();
        if let Some(other) = all.into_iter().find(|path| libraries(launcher)[0].is_some() && family(path) != own_family)
        {
            let output = own(launcher, 2, "wrong", Some(&other));
            let text = String::from_utf8_lossy(&output.stdout);
            // MPICH itself ends a process that a launcher of the other family started.
            let is_refused = text.matches("refused").count() == 2 || !output.status.success();
            let with = format!("{} with {}", launcher.display(), other.display());
            assert!(is_refused && !text.contains("taken"), "{with}: {output:?}");
            println!("{with}: refused");
        }
    }
    Ok(())
}

/// Checks that an iteration in which one rank is killed continues from its last checkpoint, and has the same bits as an
/// iteration that is not disturbed.
fn resumed(launcher: &Path, library: Option<&Path>) {
    let hash = |ranks: usize, task: &str, directory: &Path| {
        let output = launch_in(launcher, ranks, task, library, &std::env::current_exe().expect("a program"), directory);
        let text = String::from_utf8_lossy(&output.stdout);
        let found: Vec<String> =
            text.lines().filter_map(|line| Some(line.rsplit_once("came to ")?.1.to_owned())).collect();
        assert!(found.iter().all(|hash| *hash == found[0]), "{output:?}");
        (output.status.success(), found.into_iter().next())
    };
    let [undisturbed, killed] = [0, 1].map(|_| tempfile::tempdir().expect("a directory"));
    let expected = hash(2, "iterate", undisturbed.path());
    assert!(expected.0 && expected.1.is_some(), "{expected:?}");
    assert!(!hash(4, "iterate, killed", killed.path()).0);
    assert!(no_process_is_left());
    assert!(Checkpoint::open(killed.path().join("x.tiles")).is_ok_and(|checkpoint| checkpoint.read("x").is_ok()));
    // Any number of ranks read it.
    assert_eq!(hash(3, "iterate", killed.path()), expected);
}

/// The paths of the MPI launchers on this machine.
fn launchers() -> Vec<PathBuf> {
    let listed = std::env::var_os("CEMBRA_MPI_LAUNCHERS").unwrap_or_default();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let names = ["mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich"];
    let in_path = std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    let mut seen = Vec::new();
    let is_new = |path: &PathBuf| match path.canonicalize() {
        Ok(path) if !seen.contains(&path) => {
            seen.push(path);
            true
        }
        _ => false,
    };
    std::env::split_paths(&listed).chain(in_path).filter(is_new).collect()
}

/// The libraries next to a launcher; if there are none, a `None` that stands for the library that is found by its name.
fn libraries(launcher: &Path) -> Vec<Option<PathBuf>> {
    let folder = launcher.parent().and_then(Path::parent).map(|folder| folder.join("lib")).unwrap_or_default();
    let names = ["libmpi_abi.so.1", "libmpi.so.12", "libmpi.so.40"];
    let found: Vec<_> =
        names.map(|name| folder.join(name)).into_iter().filter(|path| path.exists()).map(Some).collect();
    if found.is_empty() { vec![None] } else { found }
}

/// Starts this program on `ranks` ranks, with the task `task`.
fn own(launcher: &Path, ranks: usize, task: &str, library: Option<&Path>) -> Output {
    launch(launcher, ranks, task, library, &std::env::current_exe().expect("a program"))
}

/// Starts a program on `ranks` ranks, and ends it if it takes too long.
fn launch(launcher: &Path, ranks: usize, task: &str, library: Option<&Path>, program: &Path) -> Output {
    launch_in(launcher, ranks, task, library, program, Path::new("."))
}

/// Starts a program as `launch` does, in the working directory `directory`.
fn launch_in(
    launcher: &Path,
    ranks: usize,
    task: &str,
    library: Option<&Path>,
    program: &Path,
    directory: &Path,
) -> Output {
    let mut command = Command::new(launcher);
    command.current_dir(directory);
    command.args(["-n", &ranks.to_string()]).arg(program).env(TASK, task);
    command.env(STARTED_BY, std::process::id().to_string());
    if !task.is_empty() {
        command.args(["--exact", "ranks_of_every_launcher_talk", "--nocapture", "--test-threads=1"]);
    }
    // Open MPI refuses the administrator, and more ranks than processors, unless these are set.
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    command
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    command.env_remove("CEMBRA_MPI").envs(library.map(|path| ("CEMBRA_MPI", path)));
    let mut child = match command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => panic!("{}: {error}", launcher.display()),
    };
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > MOST {
            child.kill().expect("a child");
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    child.wait_with_output().expect("its output")
}

fn link() -> Result<Arc<dyn Link>, Error> {
    cembra_mpi::from_environment()?.ok_or_else(|| no_link("no launcher is found"))
}

fn wrong() -> Result<(), Error> {
    match link() {
        Err(error)
            if (error.code(), error.tensor_kind()) == ("link", Some(Kind::Link))
                && error.to_string().contains("the launcher started this process as rank") =>
        {
            println!("refused");
        }
        other => println!("taken: {other:?}"),
    }
    Ok(())
}

/// Waits up to 5 seconds until no process is left that a launcher started, and returns whether that is so. True on
/// systems that do not list processes.
fn no_process_is_left() -> bool {
    let mark = format!("{STARTED_BY}={}", std::process::id());
    let is_left = |process: &Path| {
        let variables = std::fs::read(process.join("environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let begun = Instant::now();
    loop {
        let mut processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        if !processes.any(|process| is_left(&process.path())) {
            return true;
        }
        if begun.elapsed() > Duration::from_secs(5) {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Kills this process, as a system that is out of memory does.
fn kill() {
    let killed = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
    panic!("{killed:?}");
}

/// An evaluator whose products are computed by all ranks together, and the ranks.
fn evaluator() -> Result<(Evaluator, Arc<Ranks>), Error> {
    let ranks = Arc::new(Ranks::new(link()?)?.stall(Duration::from_secs(60)));
    Ok((Evaluator::new(Options::default()).ranks(ranks.clone(), []), ranks))
}

/// The bits of all elements of a tensor.
fn all_bits(of: &Tiled) -> Result<Vec<u64>, Error> {
    let norms = of.shape().iter().flat_map(|(tile, norm)| [tile, norm.to_bits()]);
    let elements = of.to_tensor()?.to_vec::<f64>()?;
    Ok(norms.chain(elements.into_iter().map(f64::to_bits)).collect())
}

/// The tensor that a JSON object of the golden data describes.
fn array(json: &Json) -> Result<Tensor, Error> {
    let extents: Vec<usize> = serde_json::from_value(json["shape"].clone()).expect("a shape");
    let digits = json["hex"].as_str().expect("digits");
    let bits = |at: usize| u64::from_str_radix(&digits[at..at + 16], 16).expect("digits");
    Tensor::new(&extents, (0..digits.len()).step_by(16).map(|at| f64::from_bits(bits(at))).collect())
}

/// Evaluates the golden cases of block sparsity on all ranks, and checks that each has the same bits as on one rank.
fn golden() -> Result<(), Error> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/tensor/blocksparse.jsonl.gz");
    let lines = BufReader::new(GzDecoder::new(File::open(path).expect("the golden data"))).lines();
    let (on_ranks, ranks) = evaluator()?;
    let (rank, size, mut cases) = (ranks.link().rank(), ranks.link().size(), 0);
    for line in lines {
        let case: Json = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let screening = Screening::threshold(case["threshold"].as_f64().expect("a threshold"));
        let all = |list: &str| case[list].as_array().expect("a list").clone();
        let mut operands = Vec::new();
        for (letters, array) in all("indices").iter().zip(all("operands")) {
            let axes = letters.as_str().expect("letters").chars().map(|letter| {
                let boundaries: Vec<i64> =
                    serde_json::from_value(case["tile_bounds"][letter.to_string()].clone()).expect("boundaries");
                Tiling1::new(boundaries)
            });
            let tiling = Tiling::new(axes.collect::<Result<Vec<_>, Error>>()?)?;
            operands.push(Tiled::from_tensor(&self::array(&array)?, &tiling, &screening)?);
        }
        let evaluate = |run: &Evaluator, operands: &[Tiled]| match (case["op"].as_str().expect("an operator"), operands)
        {
            ("add", [a, b]) => run.add(a, b),
            ("hadamard", [a, b]) => run.hadamard(a, b),
            ("scale", [a]) => run.scale(a, case["factor"].as_f64().expect("a factor")),
            (labels, [a, b]) => run.product(labels, a, b),
            (other, _) => Err(no_link(other.to_owned())),
        };
        let options = Options::default().threshold(screening.threshold);
        let run = Evaluator::new(options.clone()).ranks(ranks.clone(), []);
        let maps = [TileMap::square(size), TileMap::hashed()];
        let shared = operands.iter().zip(&maps).map(|(of, map)| run.distributed(of, map));
        let made = evaluate(&run, &shared.collect::<Result<Vec<Tiled>, Error>>()?)?;
        let alone = evaluate(&Evaluator::new(options), &operands)?;
        assert_eq!(all_bits(&on_ranks.gathered(&made)?)?, all_bits(&alone)?, "{}", case["id"]);
        cases += 1;
    }
    println!("rank {rank} of {size}: {cases} cases");
    Ok(())
}

/// Multiplies by a matrix in several steps, with a checkpoint after each step. If `is_killed`, the second rank is
/// killed in one of the steps.
fn iterate(is_killed: bool) -> Result<(), Error> {
    let (run, ranks) = evaluator()?;
    let directory = Path::new("x.tiles");
    let axis = Tiling1::blocked(64, 8)?;
    let shape = Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?;
    let a = run.random::<f64>(&shape, 1)?;
    let (mut x, mut step) = (run.random::<f64>(&shape, 2)?, 0.0);
    if Checkpoint::is_in(directory) {
        let checkpoint = Checkpoint::open(directory)?;
        x = run.distributed(&checkpoint.lazy("x")?, &TileMap::hashed())?;
        step = checkpoint.read("step")?.get::<f64>(&[])?;
    }
    while step < 10.0 {
        if is_killed && step == 6.0 && ranks.link().rank() == 1 {
            kill();
        }
        x = run.scale(&run.product("ij,jk->ik", &a, &x)?, 0.25)?;
        step += 1.0;
        let number = Tiling::new(std::iter::empty::<Tiling1>())?;
        let number = Tiled::from_tensor(&Tensor::scalar(step), &number, &Screening::threshold(0.0))?;
        run.checkpoint(directory, [("x", &x), ("step", &number)])?;
    }
    let mut hasher = DefaultHasher::new();
    all_bits(&run.gathered(&x)?)?.hash(&mut hasher);
    println!("the iteration came to {:016x}", hasher.finish());
    Ok(())
}

/// Ends one rank by `end` while the other ranks wait for it, to check that they end too.
fn ended_by(end: fn(&dyn Link)) -> Result<(), Error> {
    let link = link()?;
    // All of them are there.
    Ranks::new(link.clone())?.settle(Ok(()))?;
    if link.rank() == 1 {
        end(&*link);
    }
    let mut request = link.receive(1, 0, ExpectedMessage::for_bytes(id(0), 1)?)?;
    WaitPolicy::default().one(&mut request).map(drop)
}

const fn id(step: u32) -> MessageId {
    MessageId { plan: 11, step, tile: 3 }
}

/// Elements whose values tell the rank and the step that they are from.
fn elements(rank: usize, step: u32) -> Vec<f64> {
    (0..1 << 20).map(|at| f64::from(at) + (rank * 10) as f64 + f64::from(step) / 64.0).collect()
}

/// The handle of the communicator of all ranks, in libraries whose interface defines this handle as a number; `None`
/// for other libraries.
fn world_of(library: &str) -> Option<usize> {
    let known = [("libmpi_abi.so.1", 0x101), ("libmpi.so.12", 0x4400_0000)];
    known.into_iter().find(|(name, _)| library.ends_with(name)).map(|(_, world)| world)
}

fn talk() -> Result<(), Error> {
    let link = link()?;
    let (rank, size) = (link.rank(), link.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let ranks = Ranks::new(link.clone())?;
    let wait = WaitPolicy::default().stall(Duration::from_secs(60));

    // Tiles of 8 MiB around a ring, a step early; between them poison in the place of one.
    let room = |step| ExpectedMessage::for_tile(id(step), Scalar::Float64, &[1024, 1024]);
    let received = (0..4).map(|step| link.receive(last, 1, room(step)?)).collect::<Result<Vec<_>, Error>>()?;
    let mut sent = Vec::new();
    for step in 0..4 {
        let payload = match step {
            2 => Payload::poison(&room(step)?),
            _ => Payload::of_tile(id(step), Tile::of(&Tensor::new(&[1024, 1024], elements(rank, step))?)?)?,
        };
        sent.push(link.send(next, 1, payload)?);
    }
    for (step, done) in (0..).zip(wait.all(received)?) {
        match done {
            Done::Poisoned => assert_eq!(step, 2),
            done => {
                let payload = done.into_payload().expect("a tile");
                let tile = payload.tile().expect("a tile");
                assert!(tile.elements::<f64>() == elements(last, step), "step {step}");
                assert_eq!(tile.elements::<f64>().as_ptr().align_offset(64), 0);
            }
        }
    }
    wait.all(sent)?;

    for length in [0, 503, 504, 100_000] {
        let all = ranks.all_gather(vec![rank as u8; length + rank])?;
        assert!(all.iter().enumerate().all(|(of, bytes)| *bytes == vec![of as u8; length + of]), "{length}");
        let from = length % size;
        assert_eq!(ranks.broadcast(from, vec![rank as u8; 9])?, [from as u8; 9]);
    }
    ranks.agree(&[("program", "p")])?;
    if size > 1 {
        let own = if rank == 1 { "0 5" } else { "0 4" };
        let error = ranks.agree(&[("program", "p"), ("the tiling of `a`, axis 2", own)]).expect_err("an error");
        assert_eq!(error.code(), "ranks-disagree");
        assert!(error.to_string().contains("the tiling of `a`, axis 2: rank 0 has 0 4, rank 1 has 0 5"), "{error}");
    }
    let task = (size - rank) as u64;
    let error = ranks.settle(Err(Failure { task, error: no_link(format!("task {task}")) })).expect_err("an error");
    assert_eq!(error.to_string(), "task 1");
    ranks.settle(Ok(()))?;

    // What is of another plan, or another length, is an error, and leaves later messages of other tags alone.
    for (tag, wrong) in
        [(2, Payload::of_bytes(MessageId { plan: 1, ..id(0) }, vec![1; 9])?), (3, Payload::of_bytes(id(0), vec![])?)]
    {
        let sent = link.send(next, tag, wrong)?;
        let mut received = link.receive(last, tag, ExpectedMessage::for_bytes(id(0), 9)?)?;
        assert_eq!(wait.one(&mut received).expect_err("an error").tensor_kind(), Some(Kind::Message));
        wait.all(vec![sent])?;
    }

    // Waits that end: the requests are dropped while MPI still has them.
    let token = Cancellation::new();
    token.cancel();
    let never = link.receive(last, 4, ExpectedMessage::for_bytes(id(0), 9)?)?;
    let error = wait.clone().token(Some(token)).all(vec![never]).expect_err("an error");
    assert_eq!(error.fault_kind(), Some(FaultKind::Cancelled));
    let never = link.receive(last, 4, room(0)?)?;
    let error = wait.clone().stall(Duration::from_micros(500)).all(vec![never]).expect_err("an error");
    assert_eq!(error.tensor_kind(), Some(Kind::Stalled));
    drop(link.send(next, 5, Payload::of_bytes(id(0), vec![7])?)?);
    let mut received = link.receive(last, 5, ExpectedMessage::for_bytes(id(0), 1)?)?;
    assert_eq!(wait.one(&mut received)?.into_payload().map(|payload| payload.bytes().to_vec()), Some(vec![7]));

    // The memory of dropped requests is theirs until MPI is through with it: what is made after them has other memory.
    let tile = |step| Tile::of(&Tensor::new(&[1024, 1024], elements(rank, step))?);
    drop(link.receive(last, 7, room(5)?)?);
    drop(link.send(next, 8, Payload::of_tile(id(6), tile(6)?)?)?);
    let made: Vec<Tile> = (0..4).map(|_| tile(7)).collect::<Result<_, Error>>()?;
    let sent = link.send(next, 7, Payload::of_tile(id(5), tile(5)?)?)?;
    let received = link.receive(last, 8, room(6)?)?;
    let received = wait.all(vec![sent, received])?.swap_remove(1).into_payload();
    let received = received.as_ref().and_then(Payload::tile).expect("a tile");
    assert!(received.elements::<f64>() == elements(last, 6));
    assert!(made.iter().all(|tile| tile.elements::<f64>() == elements(rank, 7)));

    // MPI that runs already is used as it is, and is not finalised with that link.
    let second = cembra_mpi::from_environment()?.expect("a link");
    assert_eq!((second.rank(), second.size()), (rank, size));
    Ranks::new(second)?.settle(Ok(()))?;
    if let Some(world) = world_of(&format!("{link:?}")) {
        // SAFETY: MPI-HANDLE: it is that of all ranks in the interface that the library of this name has.
        let third = unsafe { cembra_mpi::from_communicator(world)? };
        assert_eq!(Ranks::new(third)?.all_gather(vec![rank as u8])?.len(), size);
    }

    // One thread talks.
    let error = std::thread::scope(|scope| {
        let other = scope.spawn(|| link.receive(last, 6, ExpectedMessage::for_bytes(id(0), 1)?).map(drop));
        other.join().expect("no panic").expect_err("an error")
    });
    assert!(error.to_string().contains("only the thread that made the link"), "{error}");
    assert!(link.send(size, 0, Payload::of_bytes(id(0), vec![1])?).is_err());

    // What the dropped receives were for, once no rank awaits it any more, so that nothing is left.
    ranks.settle(Ok(()))?;
    for payload in [Payload::of_bytes(id(0), vec![1; 9])?, Payload::poison(&room(0)?)] {
        wait.all(vec![link.send(next, 4, payload)?])?;
    }
    ranks.settle(Ok(()))?;
    let said = format!("{link:?}");
    // MPI begins once in a process.
    drop((ranks, link));
    let error = cembra_mpi::from_environment().expect_err("an error");
    assert!(error.to_string().contains("was finalised"), "{error}");
    println!("rank {rank} of {size}: all is well, {said}");
    Ok(())
}
