//! Tests of damaged and forged checkpoints: reading them is an error that names the file and the flaw, and takes no
//! more memory than the files have bytes. Forged files have valid hashes. They are written after the documentation of
//! the formats, without the code that is tested.

use super::{Bits, bits, bits_of, directory, files, grid, read, read_lazily};
use crate::random;
use cembra_tiles::{Checkpoint, Tiled};
use cembra_value::tensor::TensorErrorKind as Kind;
use serde_json::{Value as Json, json};
use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A function that changes the line of a tensor in the manifest.
type Change = Box<dyn FnOnce(&mut Json)>;

/// The number of bytes in a record; the header has as many, so records begin there.
const RECORD: usize = 56;

/// The record of a tile in a shard's index.
#[derive(Clone, Copy, Debug)]
struct Record {
    tile: u64,
    norm: f64,
    offset: u64,
    hash: [u8; 32],
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Splits a shard into its records and the elements after them.
fn parts(shard: &[u8]) -> (Vec<Record>, Vec<u8>) {
    assert_eq!((&shard[..12], &shard[12..16]), (&b"cembra-tiles"[..], &1_u32.to_le_bytes()[..]));
    let end = RECORD * (1 + word(shard, 48) as usize);
    let record = |bytes: &[u8]| Record {
        tile: word(bytes, 0),
        norm: f64::from_bits(word(bytes, 8)),
        offset: word(bytes, 16),
        hash: bytes[24..RECORD].try_into().expect("a hash"),
    };
    (shard[RECORD..end].chunks(RECORD).map(record).collect(), shard[end..].to_vec())
}

/// The hash of a tensor's line in the manifest without its shards, which is stored in the shards.
fn identity(tensor: &Json) -> blake3::Hash {
    let mut tensor = tensor.clone();
    tensor["shards"] = json!([]);
    blake3::hash(format!("{tensor}\n").as_bytes())
}

fn index(tensor: &Json, records: &[Record]) -> Vec<u8> {
    let mut bytes = [&b"cembra-tiles\x01\0\0\0"[..], identity(tensor).as_bytes()].concat();
    bytes.extend((records.len() as u64).to_le_bytes());
    for Record { tile, norm, offset, hash } in records {
        bytes.extend([tile.to_le_bytes(), norm.to_le_bytes(), offset.to_le_bytes()].concat());
        bytes.extend(hash);
    }
    bytes
}

/// A checkpoint with two tensors, `a` and `b`, that differ only in their elements.
struct Victim {
    directory: TempDir,
    a: Tiled,
    b: Tiled,
}

impl Victim {
    fn new() -> Victim {
        let victim =
            Victim { directory: directory(), a: random::dense::<f64>(&grid(), 1), b: random::dense::<f64>(&grid(), 2) };
        Checkpoint::write(&victim.directory, [("a", &victim.a), ("b", &victim.b)]).expect("a checkpoint");
        victim
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn manifest(&self) -> PathBuf {
        self.path().join("manifest.json")
    }

    /// The path of the shard of the tensor `name`.
    fn shard(&self, name: &str) -> PathBuf {
        let start = format!("{name}-");
        let file = files(self.path()).into_iter().find(|file| file.starts_with(&start));
        self.path().join(file.expect("a shard"))
    }

    /// The lines of the tensors in the manifest.
    fn tensors(&self) -> Vec<Json> {
        let manifest: Json = serde_json::from_slice(&fs::read(self.manifest()).expect("read")).expect("JSON");
        manifest["tensors"].as_array().expect("a list").clone()
    }

    /// Writes a manifest with the lines `tensors`, and with a valid hash.
    fn list(&self, tensors: &[Json]) {
        let lines: String = tensors.iter().map(|tensor| format!("{tensor}\n")).collect();
        let hash = blake3::hash(lines.as_bytes()).to_hex();
        let manifest = json!({"format": "cembra-tiles", "version": 1, "tensors": tensors, "blake3": hash.as_str()});
        fs::write(self.manifest(), manifest.to_string()).expect("written");
    }

    /// Changes the line of the first tensor in the manifest, and updates the hash.
    fn forge_manifest(&self, change: impl FnOnce(&mut Json)) {
        let mut tensors = self.tensors();
        change(&mut tensors[0]);
        self.list(&tensors);
    }

    /// Changes the shard of the first tensor, and updates all hashes.
    fn forge(&self, change: impl FnOnce(&mut Vec<Record>, &mut Vec<u8>)) {
        let place = self.shard("a");
        let (mut records, mut elements) = parts(&fs::read(&place).expect("read"));
        change(&mut records, &mut elements);
        let index = index(&self.tensors()[0], &records);
        fs::write(&place, [&index[..], &elements].concat()).expect("written");
        self.forge_manifest(|tensor| {
            tensor["shards"][0]["bytes"] = json!(index.len() + elements.len());
            tensor["shards"][0]["index"] = json!(blake3::hash(&index).to_hex().as_str());
        });
    }

    /// The error of reading the first tensor, which is the same as a whole and lazily.
    fn error(&self) -> String {
        let error = read(self.path(), "a").expect_err("an error");
        assert_eq!(error.tensor_kind(), Some(Kind::File), "{error}");
        assert_eq!(error.code(), "wire");
        let error = error.to_string();
        assert_eq!(read_lazily(self.path(), "a").expect_err("an error").to_string(), error);
        error
    }

    /// Asserts that the manifest is refused with a message that contains `what`.
    fn refuses_manifest(&self, what: &str) {
        let error = Checkpoint::open(self.path()).expect_err(what);
        assert_eq!(error.tensor_kind(), Some(Kind::File), "{error}");
        let error = error.to_string();
        let said = error.strip_prefix(&format!("{}: ", self.manifest().display()));
        assert!(said.is_some_and(|said| said.starts_with(what)), "{error}, not {what}");
        assert!(error.chars().count() <= 1000);
    }

    /// Asserts that the shard of the first tensor is refused with a message that contains `what`, and that the other
    /// tensor can still be read.
    fn refuses_shard(&self, what: &str) {
        let error = self.error();
        let said = error.strip_prefix(&format!("{}: ", self.shard("a").display()));
        assert!(said.is_some_and(|said| said.starts_with(what)), "{error}, not {what}");
        assert_eq!(read(self.path(), "b").expect("a tensor"), bits(&self.b));
    }
}

/// A forged checkpoint without a change equals the original. So the forged checkpoints in the other tests are refused
/// only for their changes.
#[test]
fn the_documented_formats_are_those_that_are_written_and_read() {
    let victim = Victim::new();
    let before = fs::read(victim.shard("a")).expect("read");
    victim.forge(|records, elements| {
        assert_eq!(records.iter().map(|record| record.tile).collect::<Vec<_>>(), [0, 1, 4, 5]);
        assert_eq!(elements.len(), 8 * 20);
        let start = RECORD as u64 * 5;
        assert_eq!(records.iter().map(|record| record.offset - start).collect::<Vec<_>>(), [0, 32, 64, 112]);
        for (record, norm) in records.iter().zip(victim.a.shape().norms()) {
            assert_eq!(record.norm, *norm);
            let tile = victim.a.tile(record.tile).expect("a tile").expect("present");
            let bytes: Vec<u8> = tile.elements::<f64>().iter().flat_map(|element| element.to_le_bytes()).collect();
            let first = (record.offset - start) as usize;
            assert_eq!(elements[first..first + bytes.len()], bytes);
            assert_eq!(record.hash, *blake3::hash(&bytes).as_bytes());
        }
    });
    assert_eq!(fs::read(victim.shard("a")).expect("read"), before);
    assert_eq!(read(victim.path(), "a").expect("a tensor"), bits(&victim.a));
    let axes = &victim.tensors()[0]["axes"];
    assert_eq!(*axes, json!([{"boundaries": [-1, 1, 1, 4]}, {"lower": 0, "size": 2, "upper": 4}]));
}

#[test]
fn manifests_that_are_none_are_refused() {
    let victim = Victim::new();
    let whole = fs::read_to_string(victim.manifest()).expect("read");
    let deep = "[".repeat(1 << 20);
    for (text, what) in [
        ("", "the file is not a manifest of a checkpoint: EOF"),
        ("not JSON", "the file is not a manifest of a checkpoint: expected"),
        ("{}", "the file is not a manifest of a checkpoint, because its format is not `cembra-tiles`"),
        (&deep, "the file is not a manifest of a checkpoint: "),
        (&format!("{{\"format\":{deep}"), "the file is not a manifest of a checkpoint: "),
        (&format!("{{\"more\":{deep}"), "the file is not a manifest of a checkpoint: "),
        ("\u{fffd}", "the file is not a manifest of a checkpoint: "),
        (&whole.replace("cembra-tiles", "cembra-program"), "the file is not a manifest of a checkpoint, because"),
        (&whole.replace("\"version\": 1", "\"version\": 2"), "the file has version 2, but this cembra reads version 1"),
        (&whole.replace("\"version\": 1,", ""), "the file has no version"),
        (
            &whole.replace("\"version\": 1,", "\"version\": 1, \"version\": 1,"),
            "the file is not a manifest of a checkpoint: dup",
        ),
        (
            &whole.replace("\"version\": 1,", "\"version\": 1, \"more\": 1,"),
            "the file is not a manifest of a checkpoint: unknown",
        ),
        (&whole.replace("\"name\":\"a\"", "\"name\":\"c\""), "the file was changed: its hash differs"),
        (&whole.replace("\"upper\":4", "\"upper\":3"), "the file was changed: its hash differs"),
        (&whole.replace("\"blake3\": \"", "\"blake3\": \"0"), "`0"),
        (&(whole.clone() + "{}"), "the file is not a manifest of a checkpoint: trailing"),
    ] {
        fs::write(victim.manifest(), text).expect("written");
        victim.refuses_manifest(what);
    }
    fs::remove_file(victim.manifest()).expect("removed");
    victim.refuses_manifest("the file does not exist");
    fs::create_dir(victim.manifest()).expect("a directory");
    victim.refuses_manifest("the path does not lead to a file");
    let nowhere = victim.path().join("nowhere");
    let error = Checkpoint::open(&nowhere).expect_err("an error").to_string();
    assert_eq!(error, format!("{}: the file does not exist", nowhere.join("manifest.json").display()));
}

#[test]
fn manifests_that_say_what_cannot_be_are_refused() {
    let axes = |axes: Json| move |tensor: &mut Json| tensor["axes"] = axes;
    let axis = |axis: Json| axes(json!([axis]));
    let shard = |key: &'static str, value: Json| move |tensor: &mut Json| tensor["shards"][0][key] = value;
    let kind = |kind: &'static str| move |tensor: &mut Json| tensor["type"] = json!(kind);
    let (digits, axis_of) = ("0".repeat(32), json!({"lower": 0, "size": 1, "upper": i64::MAX}));
    let cases: Vec<(Change, &str)> = vec![
        (
            Box::new(axis(json!({"boundaries": [0, 5, 1]}))),
            "tensor `a`: the boundary 1 of a tiling is after the larger boundary 5",
        ),
        (Box::new(axis(json!({"boundaries": []}))), "tensor `a`: a tiling must have boundaries"),
        (
            Box::new(axis(json!({"boundaries": [i64::MIN, i64::MAX]}))),
            "tensor `a`: an axis has 18446744073709551615 elements",
        ),
        (
            Box::new(axis(json!({"lower": i64::MIN, "size": 1, "upper": i64::MAX}))),
            "tensor `a`: an axis has 1844674407",
        ),
        (Box::new(axis(json!({"lower": 0, "size": 0, "upper": 4}))), "tensor `a`: the size of tiles must not be 0"),
        (
            Box::new(axis(json!({"lower": 5, "size": 1, "upper": 4}))),
            "tensor `a`: an axis ends at 4, before it begins at 5",
        ),
        (Box::new(axis(json!({"lower": 0, "upper": 4}))), "tensor `a`: an axis must have `boundaries`, or"),
        (Box::new(axis(json!({"boundaries": [0], "lower": 0}))), "tensor `a`: an axis must have `boundaries`, or"),
        (Box::new(axis(json!({}))), "tensor `a`: an axis must have `boundaries`, or"),
        (Box::new(axis(json!({"boundaries": [0, 0.5]}))), "the file is not a manifest of a checkpoint: invalid type"),
        (
            Box::new(axis(json!({"lower": 0, "size": -1, "upper": 4}))),
            "the file is not a manifest of a checkpoint: invalid value",
        ),
        (Box::new(axes(json!([axis_of, axis_of]))), "tensor `a`: a grid of"),
        (Box::new(axes(Json::Array(vec![json!({"boundaries": [0, 1]}); 1000]))), "tensor `a`: 1000 axes of a tiling"),
        (Box::new(kind("i32")), "tensor `a`: tiles cannot have elements of type `i32`"),
        (Box::new(kind("F64\n")), "tensor `a`: tiles cannot have elements of type `F64\\n`"),
        (Box::new(shard("file", json!("../a"))), "tensor `a`: `../a` is not the name of a shard"),
        (Box::new(shard("file", json!(format!("../a-{digits}.0")))), "tensor `a`: `../a-"),
        (Box::new(shard("file", json!(format!("a\\b-{digits}.0")))), "tensor `a`: `a\\\\b-"),
        (Box::new(shard("file", json!(format!("a-{digits}.0/x")))), "tensor `a`: `a-"),
        (Box::new(shard("file", json!(format!("{}-{digits}.0", "a".repeat(97))))), "tensor `a`: `aaa"),
        (Box::new(shard("file", json!(""))), "tensor `a`: `` is not the name of a shard"),
        (Box::new(shard("index", json!("12"))), "tensor `a`: `12` is not a hash"),
        (Box::new(shard("bytes", json!(-1))), "the file is not a manifest of a checkpoint: invalid value"),
        (Box::new(|tensor: &mut Json| tensor["name"] = json!("b")), "tensor `b` is in the manifest twice"),
    ];
    for (change, what) in cases {
        let victim = Victim::new();
        victim.forge_manifest(change);
        victim.refuses_manifest(what);
    }
}

#[test]
fn shards_that_are_not_those_of_the_manifest_are_refused() {
    let victim = Victim::new();
    let (a, b) = (victim.shard("a"), victim.shard("b"));
    let (whole, other) = (fs::read(&a).expect("read"), fs::read(&b).expect("read"));
    assert_eq!(whole.len(), other.len());
    // The shard is exchanged for that of another tensor, and for that of another checkpoint.
    fs::write(&a, &other).expect("written");
    victim.refuses_shard("the file is a shard of another tensor");
    let elsewhere = directory();
    Checkpoint::write(&elsewhere, [("a", &victim.b)]).expect("a checkpoint");
    let foreign = files(elsewhere.path()).into_iter().find(|name| name.starts_with("a-")).expect("a shard");
    fs::copy(elsewhere.path().join(foreign), &a).expect("copied");
    victim.refuses_shard("the file was changed, or belongs to another checkpoint: the hash of its index differs");
    for (at, byte, what) in [
        (0, b'C', "the file is not a shard of a checkpoint"),
        (12, 2, "the file has version 2, but this cembra reads version 1"),
        (48, 3, "the file was changed, or belongs to another checkpoint"),
        (48, 8, "the file has 440 bytes, too few for 8 tiles"),
        (53, 1, "the file has 440 bytes, too few for 1099511627780 tiles"),
        (55, 255, "the file has 440 bytes, too few for 18374686479671623684 tiles"),
        (439, 0, "tile 5 was changed: its hash differs"),
    ] {
        let mut changed = whole.clone();
        changed[at] = byte;
        fs::write(&a, changed).expect("written");
        victim.refuses_shard(what);
    }
    fs::write(&a, &whole[..100]).expect("written");
    victim.refuses_shard("the file has 100 bytes, but the manifest says 440");
    // The manifest has the length of the file, but the file is too short for a header; then the manifest has a length
    // that the file does not have.
    victim.forge_manifest(|tensor| tensor["shards"][0]["bytes"] = json!(20));
    fs::write(&a, &whole[..20]).expect("written");
    victim.refuses_shard("the file has 20 bytes, fewer than a header");
    victim.forge_manifest(|tensor| tensor["shards"][0]["bytes"] = json!(1_u64 << 60));
    victim.refuses_shard("the file has 20 bytes, but the manifest says 1152921504606846976");
    fs::remove_file(&a).expect("removed");
    let missing = format!("{}: the file does not exist", a.display());
    assert_eq!(victim.error(), missing);
    fs::create_dir(&a).expect("a directory");
    victim.refuses_shard("the path does not lead to a file");
}

#[test]
fn two_shards_that_are_swapped_are_refused() {
    let victim = Victim::new();
    let (a, b, aside) = (victim.shard("a"), victim.shard("b"), victim.path().join("aside"));
    for (from, to) in [(&a, &aside), (&b, &a), (&aside, &b)] {
        fs::rename(from, to).expect("renamed");
    }
    assert_eq!(victim.error(), format!("{}: the file is a shard of another tensor", a.display()));
    let error = read(victim.path(), "b").expect_err("an error").to_string();
    assert_eq!(error, format!("{}: the file is a shard of another tensor", b.display()));
    // The manifest has the shards swapped, and a valid hash.
    let victim = Victim::new();
    let mut tensors = victim.tensors();
    let shards = tensors[0]["shards"].take();
    tensors[0]["shards"] = tensors[1]["shards"].take();
    tensors[1]["shards"] = shards;
    victim.list(&tensors);
    assert_eq!(victim.error(), format!("{}: the file is a shard of another tensor", victim.shard("b").display()));
    // A shard has a hash of the name, the type and the tiling of its tensor.
    for change in [
        |tensor: &mut Json| tensor["type"] = json!("f32"),
        |tensor: &mut Json| tensor["axes"][0]["boundaries"] = json!([0, 2, 2, 5]),
        |tensor: &mut Json| tensor["axes"].as_array_mut().expect("axes").swap(0, 1),
    ] {
        let victim = Victim::new();
        victim.forge_manifest(change);
        victim.refuses_shard("the file is a shard of another tensor");
    }
    let victim = Victim::new();
    victim.forge_manifest(|tensor| tensor["name"] = json!("A"));
    let error = read(victim.path(), "A").expect_err("an error").to_string();
    assert_eq!(error, format!("{}: the file is a shard of another tensor", victim.shard("a").display()));
}

#[test]
fn tiles_that_cannot_be_are_refused() {
    let refuses = |change: &dyn Fn(&mut Vec<Record>, &mut Vec<u8>), what: &str| {
        let victim = Victim::new();
        victim.forge(change);
        victim.refuses_shard(what);
    };
    let swapped = |records: &mut Vec<Record>, _: &mut Vec<u8>| (records[1].tile, records[2].tile) = (4, 1);
    refuses(&swapped, "tile 1 comes after tile 4");
    refuses(&|records, _| records[1].tile = 0, "tile 0 is in the shard twice");
    refuses(&|records, _| records[3].tile = 6, "tile 6 is not one of the 6 tiles of the grid");
    refuses(&|records, _| records[3].tile = u64::MAX, "tile 18446744073709551615 is not one of the 6 tiles");
    refuses(&|records, _| records[2].tile = 3, "tile 3 has no elements");
    refuses(&|records, _| records[2].norm = -0.5, "tile 4 has the norm -0.5");
    refuses(&|records, _| records[2].norm = f64::NEG_INFINITY, "tile 4 has the norm -inf");
    refuses(&|records, _| records[0].offset = 0, "tile 0 begins at byte 0 instead of 280, so it overlaps");
    refuses(&|records, _| records[2].offset -= 8, "tile 4 begins at byte 336 instead of 344, so it overlaps");
    refuses(&|records, _| records[2].offset += 8, "tile 4 begins at byte 352 instead of 344, so it leaves a gap");
    refuses(&|records, _| records[2].offset = u64::MAX, "tile 4 begins at byte 18446744073709551615 instead of 344");
    refuses(&|records, _| records[1].hash[31] ^= 1, "tile 1 was changed: its hash differs");
    refuses(&|_, elements| elements.truncate(100), "tile 4 begins at byte 344 and ends after the last of 380 bytes");
    refuses(&|_, elements| elements.push(0), "the file has 441 bytes, but its tiles end at byte 440");
    let fewer = |records: &mut Vec<Record>, _: &mut Vec<u8>| {
        records.pop();
        records.iter_mut().for_each(|record| record.offset -= RECORD as u64);
    };
    refuses(&fewer, "the file has 384 bytes, but its tiles end at byte 336");
    // Only negative norms are refused.
    for norm in [0.0, -0.0, f64::INFINITY, f64::from_bits(0xfff8_0000_0000_0001)] {
        let victim = Victim::new();
        victim.forge(|records, _| records[2].norm = norm);
        let (_, _, tiles) = read(victim.path(), "a").expect("a tensor");
        assert_eq!(tiles[2].1, norm.to_bits());
    }
}

/// The forged tensor has tiles whose number of elements does not fit 64 bits, or for which there is no memory.
#[test]
fn tiles_without_end_take_no_memory() {
    for (extents, what) in [
        ([1_i64 << 40, 1 << 40], "tile 0 begins at byte 112 and ends after the last of 272 bytes"),
        ([1 << 20, 1 << 25], "tile 0 begins at byte 112 and ends after the last of 272 bytes"),
    ] {
        let victim = Victim::new();
        let axis = |extent: i64| json!({"lower": 0, "size": extent, "upper": extent});
        victim.forge_manifest(|tensor| tensor["axes"] = json!(extents.map(axis)));
        victim.forge(|records, _| {
            records.truncate(1);
            records[0].offset = 2 * RECORD as u64;
        });
        victim.refuses_shard(what);
    }
}

/// Shards of several ranks make one tensor, in any order of the shards. A tile in two shards is an error.
#[test]
fn tiles_of_several_ranks_are_put_together() {
    let victim = Victim::new();
    let place = victim.shard("a");
    let (records, elements) = parts(&fs::read(&place).expect("read"));
    let start = RECORD as u64 * (1 + records.len() as u64);
    let file_name = place.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    // The positions of the tiles in the shard of each rank.
    let shards = |ranks: &[&[usize]]| {
        let shard = |(rank, own): (usize, &&[usize])| {
            let (mut records_of_rank, mut bytes) = (Vec::new(), Vec::new());
            for at in *own {
                let first = (records[*at].offset - start) as usize;
                let next = records.get(at + 1).map_or(elements.len(), |next| (next.offset - start) as usize);
                let offset = (RECORD * (1 + own.len()) + bytes.len()) as u64;
                records_of_rank.push(Record { offset, ..records[*at] });
                bytes.extend_from_slice(&elements[first..next]);
            }
            let index = index(&victim.tensors()[0], &records_of_rank);
            let file = file_name.strip_suffix('0').expect("rank 0").to_owned() + &rank.to_string();
            fs::write(victim.path().join(&file), [&index[..], &bytes].concat()).expect("written");
            json!({"bytes": index.len() + bytes.len(), "file": file, "index": blake3::hash(&index).to_hex().as_str()})
        };
        let listed: Vec<Json> = ranks.iter().enumerate().map(shard).collect();
        victim.forge_manifest(|tensor| tensor["shards"] = json!(listed));
    };
    for ranks in [&[&[0, 3][..], &[1, 2]][..], &[&[2], &[], &[0, 1, 3]], &[&[3], &[2], &[1], &[0]]] {
        shards(ranks);
        assert_eq!(read(victim.path(), "a").expect("a tensor"), bits(&victim.a), "{ranks:?}");
        assert_eq!(read_lazily(victim.path(), "a").expect("a tensor"), bits(&victim.a), "{ranks:?}");
    }
    shards(&[&[0, 3], &[1, 3]]);
    let [first, second] = [0, 1].map(|rank| victim.path().join(file_name.replace(".0", &format!(".{rank}"))));
    assert_eq!(victim.error(), format!("{}: tile 5 is in {} too", second.display(), first.display()));
    shards(&[]);
    assert_eq!(read(victim.path(), "a").expect("a tensor").2, []);
}

/// If any bit of a file is changed, each tensor is unchanged or an error. If the bit is in an element, exactly one tile
/// is an error.
#[test]
fn no_byte_may_be_another_one() {
    let victim = Victim::new();
    let (a, b): (Bits, Bits) = (bits(&victim.a), bits(&victim.b));
    for place in [victim.shard("a"), victim.manifest()] {
        let whole = fs::read(&place).expect("read");
        let mut same = 0;
        let mut file = OpenOptions::new().write(true).open(&place).expect("opened");
        for (at, flip) in (0..whole.len()).flat_map(|at| [(at, 1), (at, 0x20), (at, 0x80), (at, 0)]) {
            // The byte is written in place, because writing the whole file may wait for the disk.
            file.seek(SeekFrom::Start(at as u64)).and_then(|_| file.write_all(&[whole[at] ^ flip])).expect("written");
            let Ok(checkpoint) = Checkpoint::open(victim.path()) else {
                assert_eq!(place, victim.manifest(), "byte {at}");
                continue;
            };
            assert!(checkpoint.names().eq(["a", "b"]), "byte {at}");
            assert_eq!(checkpoint.tiling("a").expect("a tiling"), victim.a.tiling());
            assert_eq!(bits(&checkpoint.read("b").expect("a tensor")), b, "byte {at}");
            let read = checkpoint.read("a").and_then(|read| bits_of(&read));
            if place == victim.manifest() {
                assert_eq!(read.expect("the same tensor"), a, "byte {at}");
                same += usize::from(flip != 0);
                continue;
            }
            if flip == 0 {
                // The byte is restored before the next one is changed.
                assert_eq!(read.expect("the same tensor"), a);
                continue;
            }
            assert_eq!(read.expect_err("an error").tensor_kind(), Some(Kind::File), "byte {at}");
            match checkpoint.lazy("a") {
                Err(_) => assert!(at < 5 * RECORD, "byte {at}"),
                Ok(lazy) => {
                    let wrong = lazy.tiles().filter(Result::is_err).count();
                    assert!(at >= 5 * RECORD && wrong == 1, "byte {at}: {wrong} tiles");
                }
            }
        }
        // Capital letters as digits of the manifest's own hash have the same value.
        assert!(same <= 64, "{same}");
    }
}

#[test]
fn no_file_may_be_cut_short_or_be_longer() {
    let victim = Victim::new();
    for place in [victim.shard("a"), victim.shard("b"), victim.manifest()] {
        let whole = fs::read(&place).expect("read");
        let name = if place == victim.shard("b") { "b" } else { "a" };
        let file = OpenOptions::new().write(true).open(&place).expect("opened");
        for len in (0..whole.len()).rev() {
            file.set_len(len as u64).expect("cut");
            let (read, lazy) = (read(victim.path(), name), read_lazily(victim.path(), name));
            if place == victim.manifest() && len + 1 == whole.len() {
                // The last line feed.
                assert_eq!(read.expect("the same tensor"), bits(&victim.a));
                continue;
            }
            assert_eq!(read.expect_err("an error").tensor_kind(), Some(Kind::File), "{len}");
            assert_eq!(lazy.expect_err("an error").tensor_kind(), Some(Kind::File), "{len}");
        }
        for more in [&b"0"[..], &whole] {
            fs::write(&place, [&whole[..], more].concat()).expect("written");
            assert!(read(victim.path(), name).is_err() && read_lazily(victim.path(), name).is_err());
        }
        fs::write(&place, &whole).expect("written");
    }
}

/// If a file is changed after it was opened, the tiles with changed bytes are errors when they are read.
#[test]
fn tiles_are_compared_with_their_hashes_when_they_are_read() {
    let victim = Victim::new();
    let lazy = Checkpoint::open(victim.path()).expect("a checkpoint").lazy("a").expect("a tensor");
    let place = victim.shard("a");
    let file = OpenOptions::new().write(true).open(&place).expect("opened");
    file.set_len(400).expect("cut");
    let error = lazy.tile(5).expect_err("an error");
    assert_eq!(error.tensor_kind(), Some(Kind::File));
    assert_eq!(error.to_string(), format!("{}: the file ends after 400 bytes", place.display()));
    assert!(lazy.tile(0).expect("a tile").is_some());
    file.set_len(440).expect("filled with zeros");
    let error = lazy.tile(5).expect_err("an error");
    assert_eq!(error.to_string(), format!("{}: tile 5 was changed: its hash differs", place.display()));
}
