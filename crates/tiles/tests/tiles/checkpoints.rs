//! Tests of checkpoints: tensors are read with the bits with which they were written, and an older checkpoint stays
//! until the new one is complete. Damaged files are in `damage.rs`.

mod damage;

use crate::random::{self, ALL};
use cembra_runtime::Scalar;
use cembra_tiles::{
    Checkpoint, Evaluator, Float, MOST_TILES, Options, Screening, Shape, Tile, TilePlace, Tiled, Tiling, Tiling1,
};
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;
use fastrand::Rng;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Checkpoint>();
};

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn grid() -> Tiling {
    let rows = Tiling1::new([-1, 1, 1, 4]).expect("a tiling");
    Tiling::new([rows, Tiling1::blocked(4, 2).expect("a tiling")]).expect("a tiling")
}

/// A tensor for comparison: its type, its tiling, and for each present tile its number, the bits of its norm and those
/// of its elements.
type Bits = (Scalar, Tiling, Vec<(u64, u64, Vec<u64>)>);

fn bits_of(tiled: &Tiled) -> Result<Bits, Error> {
    let elements = |tile: &Tile| {
        let layout = tile.tensor().layout();
        let first = layout.offset();
        (first..first + layout.len()).map(|at| tile.tensor().data().bits(at)).collect::<Vec<u64>>()
    };
    let norms = tiled.shape().norms().iter();
    let tiles = tiled.tiles().zip(norms).map(|(tile, norm)| {
        let (number, tile) = tile?;
        Ok((number, norm.to_bits(), elements(&tile)))
    });
    Ok((tiled.scalar_type(), tiled.tiling().clone(), tiles.collect::<Result<_, Error>>()?))
}

fn bits(tiled: &Tiled) -> Bits {
    bits_of(tiled).expect("all tiles")
}

fn read(directory: &Path, name: &str) -> Result<Bits, Error> {
    bits_of(&Checkpoint::open(directory)?.read(name)?)
}

fn read_lazily(directory: &Path, name: &str) -> Result<Bits, Error> {
    bits_of(&Checkpoint::open(directory)?.lazy(name)?)
}

/// The names of all files of a directory.
fn files(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a text")).collect()
}

/// Asserts that tensors are read as they were written, as a whole and lazily. Returns the directory of their
/// checkpoint.
fn check(tensors: &[(&str, &Tiled)]) -> TempDir {
    let directory = directory();
    Checkpoint::write(&directory, tensors.iter().copied()).expect("a checkpoint");
    let checkpoint = Checkpoint::open(&directory).expect("a checkpoint");
    let names: BTreeSet<&str> = tensors.iter().map(|(name, _)| *name).collect();
    assert!(checkpoint.names().eq(names));
    assert_eq!(files(directory.path()).len(), tensors.len() + 1);
    for (name, tensor) in tensors {
        let expected = bits(tensor);
        assert_eq!(checkpoint.tiling(name).expect("a tiling"), tensor.tiling());
        assert_eq!(checkpoint.scalar_type(name).expect("a type"), tensor.scalar_type());
        let (whole, lazy) = (checkpoint.read(name).expect("a tensor"), checkpoint.lazy(name).expect("a tensor"));
        assert_eq!((whole.is_lazy(), lazy.is_lazy()), (false, true));
        assert_eq!(bits(&whole), expected, "{name}");
        assert_eq!(bits(&lazy), expected, "{name}");
        for absent in (0..tensor.tiling().tiles().min(50)).filter(|tile| tensor.shape().norm(*tile).is_none()) {
            assert!(lazy.tile(absent).expect("absent").is_none());
        }
    }
    directory
}

#[test]
fn tensors_are_read_as_they_were_written() {
    let mut rng = Rng::with_seed(1);
    for round in 0..60 {
        let rank = round % 5;
        let share = rng.f64() * 1.2;
        let [a, b] = [0, 1].map(|_| random::tiling(&mut rng, rank));
        let (a, b) = (random::sparse::<f64>(&mut rng, &a, share), random::sparse::<f32>(&mut rng, &b, share));
        check(&[("b", &b), ("a", &a)]);
    }
}

/// The elements have bits that arithmetic would change, such as payloads of NaNs, and are read in several pieces.
#[test]
fn all_bits_of_elements_and_norms_are_kept() {
    fn of_bits<T: Float>(words: [u64; 6]) {
        let axis = Tiling1::new([0, 7, 20_000, 20_001, 60_000]).expect("a tiling");
        let shape = Shape::dense(&Tiling::new([axis]).expect("a tiling"), MOST_TILES).expect("a shape");
        let tensor = Tiled::from_fn(&shape, |at| T::from_bits(words[at[0] as usize % 6] + at[0] as u64 / 6));
        let tensor = tensor.expect("a tensor");
        assert!(tensor.shape().norms()[0].is_nan());
        check(&[("bits", &tensor)]);
    }
    // Quiet and signalling NaNs with payloads, -0, subnormal numbers.
    of_bits::<f64>([0x7ff8_0000_0000_0100, 0xfff0_0000_0000_0100, 1 << 63, 1, 0x3ff0_0000_0000_0000, 0xfff8 << 48]);
    of_bits::<f32>([0x7fc0_0100, 0xff80_0100, 1 << 31, 1, 0x3f80_0000, 0x7f80_0000]);
    let line = Tiling::new([Tiling1::blocked(2, 1).expect("a tiling")]).expect("a tiling");
    let minus_zero = Tiled::from_fn(&Shape::dense(&line, MOST_TILES).expect("a shape"), |_| -0.0_f64);
    let directory = check(&[("zero", &minus_zero.expect("a tensor"))]);
    let again = Checkpoint::open(&directory).expect("a checkpoint").read("zero").expect("a tensor");
    assert!(again.get::<f64>(&[1]).expect("an element").is_sign_negative());
}

/// The number of tiles is so large that their records are read in several pieces.
#[test]
fn thousands_of_tiles_are_read_as_they_were_written() {
    let line = Tiling::new([Tiling1::blocked(5000, 2).expect("a tiling")]).expect("a tiling");
    check(&[("many", &random::sparse::<f32>(&mut Rng::with_seed(5), &line, 0.9))]);
}

#[test]
fn empty_tensors_and_axes_of_any_kind_are_kept() {
    let one = Tiling1::new([5]).expect("a tiling");
    let scalar =
        Tiled::from_fn(&Shape::dense(&Tiling::new(Vec::<Tiling1>::new()).unwrap(), 1).unwrap(), |_| 2.5_f64).unwrap();
    let no_tiles = Tiled::from_fn(&Shape::dense(&Tiling::new([one.clone(), one]).unwrap(), 1).unwrap(), |_| 1.0_f32);
    let empty = Tiled::from_fn(&Shape::empty(&grid()), |_| 1.0_f64).unwrap();
    let tiles = [
        Tiling1::new([-9, -9, -9]),
        Tiling1::new([i64::MIN, i64::MIN + 3]),
        Tiling1::new([i64::MAX - 3, i64::MAX - 3, i64::MAX]),
        Tiling1::blocked(10, 4).and_then(|axis| axis.rebased(-5)),
    ];
    let axes = Tiling::new(tiles.map(|axis| axis.expect("a tiling"))).expect("a tiling");
    let far = Tiled::random::<f64>(&Shape::dense(&axes, MOST_TILES).expect("a shape"), 3).expect("a tensor");
    check(&[("scalar", &scalar), ("no tiles", &no_tiles.unwrap()), ("empty", &empty), ("far", &far)]);
    let filled = Tiling::new(axes.axes()[1..].iter()).expect("a tiling");
    check(&[("far", &random::dense::<f64>(&filled, 4))]);
    let directory = check(&[]);
    assert_eq!(read(directory.path(), "a").expect_err("an error").tensor_kind(), Some(Kind::UnknownName));
}

/// The grid has more than 2^61 tiles, of which two are present: neither the manifest nor the shard has a list as long
/// as the grid.
#[test]
fn a_huge_grid_takes_the_bytes_of_its_present_tiles() {
    let rows = Tiling1::blocked(1 << 41, 2).and_then(|axis| axis.rebased(-7)).expect("a tiling");
    let columns = Tiling1::blocked(1 << 24, 4).and_then(|axis| axis.block(1 << 20..1 << 22)).expect("a tiling");
    let tiling = Tiling::new([rows, columns]).expect("a tiling");
    let present = [(1 << 50, f64::INFINITY), (tiling.tiles() - 1, f64::INFINITY)];
    let shape = Shape::of_norms(&tiling, present, &ALL).expect("a shape");
    let directory = check(&[("thin", &Tiled::random::<f64>(&shape, 1).expect("a tensor"))]);
    let bytes: u64 =
        files(directory.path()).iter().map(|name| fs::metadata(directory.path().join(name)).unwrap().len()).sum();
    assert!(bytes < 1000, "{bytes}");
}

#[test]
fn names_of_files_are_safe_whatever_tensors_are_called() {
    let a = random::dense::<f64>(&grid(), 1);
    let (long, longer) = ("x".repeat(300), "x".repeat(300) + "y");
    let umlauts = "ü".repeat(100);
    let names = [
        "",
        ".",
        "..",
        "../up",
        "/etc/passwd",
        "a\\b",
        "a:b",
        "nul\0",
        "a\nb",
        "%41",
        "A",
        "a",
        "con",
        "manifest.json",
    ];
    // The tensors have the same contents and different names.
    let tensors: Vec<(&str, &Tiled)> =
        names.into_iter().chain([&*long, &*longer, &*umlauts]).map(|name| (name, &a)).collect();
    let directory = check(&tensors);
    for file in files(directory.path()).iter().filter(|file| *file != "manifest.json") {
        let (name, hash) = file.strip_suffix(".0").and_then(|file| file.rsplit_once('-')).expect("a name and a hash");
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-%".contains(&byte)), "{file}");
        assert!(hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{file}");
        assert!(file.len() < 150, "{file}");
    }
    let starts: BTreeSet<String> =
        files(directory.path()).iter().filter_map(|file| Some(file.rsplit_once('-')?.0.to_owned())).collect();
    assert!(
        ["", "%2E%2E%2Fup", "a%5Cb", "%2541", "A", "a", "con"].iter().all(|name| starts.contains(*name)),
        "{starts:?}"
    );
    let error = Checkpoint::write(&directory, [("a", &a), ("b", &a), ("a", &a)]).expect_err("an error");
    assert_eq!(error.tensor_kind(), Some(Kind::File));
    assert_eq!(error.to_string(), "two tensors of a checkpoint are called `a`; give each tensor its own name");
    let error = Checkpoint::open(&directory).unwrap().lazy("b\u{7}").expect_err("an error");
    let said = format!("{}: the checkpoint has no tensor `b\\u{{7}}`", directory.path().display());
    assert_eq!((error.tensor_kind(), error.to_string()), (Some(Kind::UnknownName), said));
}

#[test]
fn the_same_tensors_are_the_same_files() {
    let (a, b) = (random::dense::<f64>(&grid(), 1), random::dense::<f32>(&grid(), 2));
    let [one, other] = [[("a", &a), ("b", &b)], [("b", &b), ("a", &a)]].map(|tensors| {
        let directory = directory();
        Checkpoint::write(&directory, tensors).expect("a checkpoint");
        files(directory.path())
            .into_iter()
            .map(|name| (fs::read(directory.path().join(&name)).unwrap(), name))
            .collect::<Vec<_>>()
    });
    assert_eq!(one, other);
}

/// A lazy tensor. `seen` is called for each tile before it is computed, and may fail.
fn lazy(of: &Tiled, seen: impl Fn(&TilePlace) -> Result<(), Error> + Send + Sync + 'static) -> Tiled {
    let whole = of.clone();
    let promised = of.shape().tiles().iter().map(|tile| (*tile, 1e3));
    let shape = Shape::of_norms(of.tiling(), promised, &ALL).expect("a shape");
    let source = move |place: &TilePlace| {
        seen(place)?;
        Ok(whole.tile(place.number)?.expect("present").tensor().clone())
    };
    Tiled::lazy(&shape, of.scalar_type(), source).expect("a lazy tensor")
}

#[test]
fn lazy_tiles_are_made_once_and_have_true_norms_when_they_are_read() {
    let whole = random::sparse::<f32>(&mut Rng::with_seed(2), &grid(), 0.8);
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let lazy = lazy(&whole, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let directory = directory();
    Checkpoint::write(&directory, [("a", &lazy)]).expect("a checkpoint");
    assert_eq!(made.load(Ordering::Relaxed), whole.shape().len());
    assert_eq!(read(directory.path(), "a").expect("a tensor"), bits(&whole));
}

#[test]
fn a_newer_checkpoint_takes_the_place_of_the_older_one() {
    let (a, b) = (random::dense::<f64>(&grid(), 1), random::dense::<f64>(&grid(), 2));
    let directory = directory();
    let path = directory.path();
    Checkpoint::write(path, [("a", &a), ("gone", &a)]).expect("a checkpoint");
    let older = files(path);
    let opened = Checkpoint::open(path).expect("a checkpoint");
    let lazy = opened.lazy("a").expect("a tensor");
    // Files that crashes left, which are removed, and files of other programs, which stay.
    for name in [".checkpoint-x1.part", &format!("a-{}.7", "0".repeat(32))] {
        fs::write(path.join(name), "half").expect("written");
    }
    let others = ["notes-0.0", "a.0", "manifest.json.old", ".checkpoint-x1", "results.part"];
    others.iter().for_each(|name| fs::write(path.join(name), "mine").expect("written"));
    Checkpoint::write(path, [("a", &b)]).expect("a checkpoint");
    let newer = files(path);
    assert_eq!(newer.len(), 2 + others.len(), "{newer:?}");
    assert!(others.iter().all(|name| newer.contains(*name)), "{newer:?}");
    assert_eq!(newer.intersection(&older).collect::<Vec<_>>(), ["manifest.json"]);
    assert_eq!(read(path, "a").expect("a tensor"), bits(&b));
    // A lazy tensor that was opened before can still be read; a tensor that was not opened is an error.
    if cfg!(unix) {
        assert_eq!(bits(&lazy), bits(&a));
    }
    let error = opened.read("a").expect_err("an error");
    assert_eq!(error.tensor_kind(), Some(Kind::File));
    assert!(error.to_string().ends_with(".0: the file does not exist"), "{error}");
    // Writing the same tensors again changes nothing.
    Checkpoint::write(path, [("a", &b)]).expect("a checkpoint");
    assert_eq!((files(path), read(path, "a").expect("a tensor")), (newer, bits(&b)));
}

#[test]
fn a_tensor_may_be_read_from_the_checkpoint_that_is_replaced() {
    let a = random::sparse::<f64>(&mut Rng::with_seed(3), &grid(), 0.8);
    let directory = directory();
    Checkpoint::write(&directory, [("a", &a), ("b", &a)]).expect("a checkpoint");
    let opened = Checkpoint::open(&directory).expect("a checkpoint");
    let (kept, other) = (opened.lazy("a").expect("a tensor"), opened.lazy("b").expect("a tensor"));
    Checkpoint::write(&directory, [("a", &kept), ("c", &other)]).expect("a checkpoint");
    assert!(Checkpoint::open(&directory).expect("a checkpoint").names().eq(["a", "c"]));
    for name in ["a", "c"] {
        assert_eq!(read(directory.path(), name).expect("a tensor"), bits(&a));
    }
}

/// After a crash, the files are as they were at that moment. So the directory is copied whenever a tile is computed:
/// the copy must be the older checkpoint.
#[test]
fn a_crash_leaves_the_older_checkpoint() {
    let (a, b) = (random::dense::<f64>(&grid(), 1), random::dense::<f64>(&grid(), 2));
    let (directory, crashes) = (directory(), Arc::new(directory()));
    let path = directory.path().to_owned();
    Checkpoint::write(&path, [("a", &a), ("b", &a)]).expect("a checkpoint");
    let count = Arc::new(AtomicUsize::new(0));
    let copied = {
        let (path, crashes, count) = (path.clone(), crashes.clone(), count.clone());
        lazy(&b, move |_| {
            let to = crashes.path().join(count.fetch_add(1, Ordering::Relaxed).to_string());
            fs::create_dir(&to).expect("a directory");
            for name in files(&path) {
                fs::copy(path.join(&name), to.join(&name)).expect("copied");
            }
            Ok(())
        })
    };
    Checkpoint::write(&path, [("a", &b), ("b", &copied)]).expect("a checkpoint");
    assert_eq!(read(&path, "b").expect("a tensor"), bits(&b));
    let newer = files(&path);
    assert_eq!(count.load(Ordering::Relaxed), 4);
    for crash in 0..count.load(Ordering::Relaxed) {
        let crash = crashes.path().join(crash.to_string());
        assert_eq!(files(&crash).len(), 5, "three files, and two that are not whole");
        for name in ["a", "b"] {
            assert_eq!(read(&crash, name).expect("a tensor"), bits(&a));
        }
        // The shards of the newer checkpoint have their final names, its manifest does not.
        for name in newer.iter().filter(|name| *name != "manifest.json") {
            fs::copy(path.join(name), crash.join(name)).expect("copied");
        }
        fs::write(crash.join(".checkpoint-x.part"), "{\"format\":").expect("written");
        assert_eq!(read(&crash, "a").expect("a tensor"), bits(&a));
        // The next checkpoint removes them.
        Checkpoint::write(&crash, [("a", &b), ("b", &b)]).expect("a checkpoint");
        assert_eq!((files(&crash), read(&crash, "a").expect("a tensor")), (newer.clone(), bits(&b)));
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_older_one_and_no_files() {
    let (a, b) = (random::dense::<f64>(&grid(), 1), random::dense::<f64>(&grid(), 2));
    let directory = directory();
    let path = directory.path();
    Checkpoint::write(path, [("a", &a), ("z", &a)]).expect("a checkpoint");
    let before = files(path);
    for last in b.shape().tiles().to_vec() {
        let fails =
            lazy(
                &b,
                move |place| {
                    if place.number == last { Err(Error::tensors(Kind::Deadline, "too late")) } else { Ok(()) }
                },
            );
        let error = Checkpoint::write(path, [("a", &b), ("z", &fails)]).expect_err("an error");
        assert_eq!((error.tensor_kind(), error.to_string().as_str()), (Some(Kind::Deadline), "too late"));
        assert_eq!(files(path), before);
        assert_eq!((read(path, "a").unwrap(), read(path, "z").unwrap()), (bits(&a), bits(&a)));
    }
    // Shards have their final names when the manifest cannot be written, because a directory has its name.
    let other = directory.path().join("other");
    fs::create_dir_all(other.join("manifest.json/in-it")).expect("a directory");
    let error = Checkpoint::write(&other, [("a", &a)]).expect_err("an error");
    assert_eq!(error.tensor_kind(), Some(Kind::File));
    assert!(error.to_string().contains("manifest.json: the file cannot be written: "), "{error}");
    assert_eq!(files(&other), BTreeSet::from(["manifest.json".to_owned()]));
    // A shard that was there before has the same name, and stays.
    let shard = before.iter().find(|name| name.starts_with("a-")).expect("a shard");
    fs::copy(path.join(shard), other.join(shard)).expect("copied");
    Checkpoint::write(&other, [("a", &a), ("b", &b)]).expect_err("an error");
    assert_eq!(files(&other), BTreeSet::from(["manifest.json".to_owned(), shard.clone()]));
    // A file has the name of the directory.
    fs::write(path.join("file"), "").expect("written");
    for place in ["file", "file/below"] {
        let error = Checkpoint::write(path.join(place), [("a", &a)]).expect_err("an error");
        assert_eq!(error.tensor_kind(), Some(Kind::File));
        assert!(error.to_string().contains(&format!("{place}: the file cannot be written: ")), "{error}");
    }
}

#[test]
fn directories_are_made() {
    let directory = directory();
    let path = directory.path().join("runs/17");
    let a = random::dense::<f64>(&grid(), 1);
    Checkpoint::write(&path, [("a", &a)]).expect("a checkpoint");
    assert_eq!(read(&path, "a").expect("a tensor"), bits(&a));
}

/// A tensor that is read tile by tile from a checkpoint is an operand of a product, with the same bits.
#[test]
fn products_of_lazy_tensors_have_the_same_bits() {
    let axis = Tiling1::new([-4, 0, 9, 9, 30, 41]).expect("a tiling");
    let tiling = Tiling::new([&axis, &axis]).expect("a tiling");
    let mut rng = Rng::with_seed(4);
    let (a, b) = (random::sparse::<f64>(&mut rng, &tiling, 0.7), random::sparse::<f64>(&mut rng, &tiling, 0.7));
    let directory = check(&[("a", &a), ("b", &b)]);
    let checkpoint = Checkpoint::open(&directory).expect("a checkpoint");
    let [lazy_a, lazy_b] = ["a", "b"].map(|name| checkpoint.lazy(name).expect("a tensor"));
    for threads in [1, 3] {
        let run = Evaluator::new(Options::default()).threads(threads);
        let expected = run.product("ij,jk->ik", &a, &b).expect("a product");
        assert_eq!(bits(&run.product("ij,jk->ik", &lazy_a, &lazy_b).expect("a product")), bits(&expected));
        assert_eq!(bits(&run.materialized(&lazy_a).expect("a tensor")), bits(&a));
        let large = Screening::threshold(a.shape().norms()[0]);
        assert_eq!(bits(&run.truncate(&lazy_a, &large).unwrap()), bits(&run.truncate(&a, &large).unwrap()));
    }
}
