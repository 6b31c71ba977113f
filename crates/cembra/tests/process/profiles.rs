//! Tests the files that describe machine code to the system's profiler: reads them as the profiler does. It is one
//! test, because a process has one profile.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use cembra::metrics::{Counters, Profile, profile_code};
use cembra::native::Tier;
use cembra::{Backend, Model, ModelExecutor, Options};
use std::io::ErrorKind;
use std::sync::Arc;

#[derive(cembra::Input)]
struct Row {
    x: f64,
}

/// Removes the first `N` bytes from `bytes` and returns them.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (taken, rest) = bytes.split_at(N);
    *bytes = rest;
    taken.try_into().expect("as many")
}

fn word(bytes: &mut &[u8]) -> u32 {
    u32::from_ne_bytes(take(bytes))
}

fn long(bytes: &mut &[u8]) -> u64 {
    u64::from_ne_bytes(take(bytes))
}

/// A function of machine code, as a profiler's file describes it.
#[derive(PartialEq, Debug)]
struct Function {
    name: String,
    start: u64,
    size: u64,
}

fn read_map(text: &str) -> Vec<Function> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().expect("three parts");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let (start, size) = (number(part()), number(part()));
        Function { name: part().to_owned(), start, size }
    };
    assert!(text.ends_with('\n'));
    text.lines().map(line).collect()
}

/// Parses a jitdump file, and returns its functions with their code.
fn read_dump(mut bytes: &[u8]) -> Vec<(Function, Vec<u8>)> {
    let mut last = u64::MIN;
    let header = [(); 6].map(|()| word(&mut bytes));
    // Magic, version, size of the header, x86-64, free, process.
    assert_eq!(header, [0x4a69_5444, 1, 40, 62, 0, std::process::id()]);
    let mut later = |time: u64| {
        assert!(time >= last && time > 0, "times do not run backwards");
        last = time;
    };
    later(long(&mut bytes));
    assert_eq!(long(&mut bytes), 0, "flags");
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let mut record = bytes;
        assert_eq!(word(&mut record), 0, "a function that was loaded");
        let total = word(&mut record) as usize;
        later(long(&mut record));
        assert_eq!(word(&mut record), std::process::id());
        assert!(word(&mut record) > 0, "a thread");
        let (linked, start, size) = (long(&mut record), long(&mut record), long(&mut record));
        assert_eq!((linked, long(&mut record)), (start, found.len() as u64));
        let end = record.iter().position(|byte| *byte == 0).expect("the end of the name");
        let name = String::from_utf8(record[..end].to_vec()).expect("a name");
        let code = &record[end + 1..][..size as usize];
        assert_eq!(total, 56 + end + 1 + code.len());
        found.push((Function { name, start, size }, code.to_vec()));
        bytes = &bytes[total..];
    }
    found
}

/// Links and folders that have the files' names are not overwritten. A file from an earlier process with the same
/// number is.
fn names_that_are_taken(directory: &std::path::Path) {
    let precious = directory.join("precious");
    std::fs::write(&precious, "kept").expect("done");
    for (profile, name) in [(Profile::PerfMap, "perf-ID.map"), (Profile::Jitdump, "jit-ID.dump")] {
        let path = directory.join(name.replace("ID", &std::process::id().to_string()));
        let refused = || profile_code(profile, directory).expect_err("refused").kind();
        std::os::unix::fs::symlink(&precious, &path).expect("done");
        assert_eq!(refused(), ErrorKind::AlreadyExists);
        std::fs::remove_file(&path).expect("done");
        std::os::unix::fs::symlink(directory.join("nothing"), &path).expect("done");
        assert_eq!(refused(), ErrorKind::AlreadyExists);
        assert!(!directory.join("nothing").exists());
        std::fs::remove_file(&path).expect("done");
        std::fs::create_dir(&path).expect("done");
        assert_eq!(refused(), ErrorKind::AlreadyExists);
        std::fs::remove_dir(&path).expect("done");
        // Another name of a file keeps what is in it.
        std::fs::hard_link(&precious, &path).expect("done");
    }
    assert_eq!(std::fs::read_to_string(&precious).expect("read"), "kept");
}

#[test]
fn profiles_name_the_code_of_models() {
    let _alone = crate::alone();
    let directory = tempfile::tempdir().unwrap();
    let counters = Arc::new(Counters::default());
    let model = Model::parse("input x: f64; sqrt(x) + exp(x)").unwrap();
    let options = Options::default().backend(Backend::Native).metrics(counters.clone());
    let before = model.executor::<Row, f64>(&options).unwrap();

    names_that_are_taken(directory.path());
    let map = profile_code(Profile::PerfMap, directory.path()).unwrap();
    let dump = profile_code(Profile::Jitdump, directory.path()).unwrap();
    assert_eq!(std::fs::read_to_string(directory.path().join("precious")).unwrap(), "kept");
    let id = std::process::id();
    assert_eq!(
        (map.file_name().unwrap(), dump.file_name().unwrap()),
        (format!("perf-{id}.map").as_ref(), format!("jit-{id}.dump").as_ref())
    );
    for profile in [Profile::PerfMap, Profile::Jitdump] {
        assert_eq!(profile_code(profile, directory.path()).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }
    // The mark that the profiler finds the dump by: the file itself, mapped as code.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mark = maps.lines().find(|line| line.ends_with(&format!("/jit-{id}.dump"))).expect("a mapping");
    assert!(mark.split(' ').nth(1).unwrap().contains('x'), "{mark}");

    let named = options.clone().name("credit limit\nv2");
    let quick = model.executor::<Row, f64>(&named.clone().tier(Tier::Quick)).unwrap();
    let optimised = model.executor::<Row, f64>(&named).unwrap();
    let nameless = model.compile(&options).unwrap();
    let functions = read_map(&std::fs::read_to_string(&map).unwrap());
    let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(
        names,
        ["cembra::credit limit v2::quick", "cembra::credit limit v2::optimised", "cembra::model::optimised"]
    );
    // Each address is in the function that has its name; what was there before is in none.
    let entry = |run: &ModelExecutor<Row, f64>| run.raw().expect("machine code") as usize as u64;
    let holder = |address: u64| functions.iter().position(|f| (f.start..f.start + f.size).contains(&address));
    assert_eq!([&quick, &optimised, &before].map(|run| holder(entry(run))), [Some(0), Some(1), None]);
    drop(nameless);

    let dumped = read_dump(&std::fs::read(&dump).unwrap());
    assert!(dumped.iter().map(|(function, _)| function).eq(&functions), "both files say the same");
    // A session's code is what the code generator made.
    let code = model.machine(&options).unwrap().code;
    assert_eq!(dumped[2].1[..code.len()], code);
    assert!(dumped[2].1[code.len()..].iter().all(|byte| *byte == 0), "the rest of the last page");
    assert_eq!(counters.counts().profiles_failed, 0);
}
