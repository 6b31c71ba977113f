//! Tests the code cache on disk: stored code is used, and after any damage to the files a model still gives its own
//! results.
#![cfg(unix)]

use cembra::metrics::CacheCounters;
use cembra::native::{CodeCache, Tier};
use cembra::operators::{Cell, Registry, Tape, Un, UserOperator};
use cembra::values::print_value;
use cembra::{Backend, Limits, Model, Options, Value};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Creates a folder that only the current user can access.
fn private() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o700)).tempdir().expect("a folder")
}

fn open(folder: &Path) -> CodeCache {
    CodeCache::open(folder).expect("a private folder")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn shown(value: &Value) -> String {
    print_value(value).trim_end_matches("f64").to_owned()
}

/// Evaluates the model `source` with machine code for the input 3.5, and returns the main output as text.
fn evaluate(source: &str, options: &Options) -> String {
    let model = Model::parse(source).expect(source);
    let executor = model.compile(&options.clone().backend(Backend::Native)).expect(source);
    shown(&executor.session().evaluate(&[Value::from(3.5)]).expect(source)[0])
}

fn counted(cache: &CodeCache) -> (u64, u64, u64) {
    let CacheCounters { hits, misses, damaged, .. } = cache.counters();
    (hits, misses, damaged)
}

const PLUS: &str = "input x: f64; x + 1.0";
const TIMES: &str = "input x: f64; x * 2.0";

#[test]
fn code_is_taken_from_the_folder_and_gives_the_same() {
    let _alone = crate::alone();
    let folder = private();
    let models = [
        (PLUS, "4.5"),
        (TIMES, "7.0"),
        ("input x: f64; where(x > 3.0, \"large\", \"small\")", "\"large\""),
        ("input x: f64; strings.upper(where(x > 3.0, \"large\", \"small\"))", "\"LARGE\""),
        ("input x: f64; math.log1p(x) > 1.5", "present"),
        ("input x: f64; seq.reduce(fn(sum, i) = sum + core.cast(i, f64) * x, seq.range(4), 0.0f64)", "21.0"),
    ];
    for round in 0..2 {
        let cache = open(folder.path());
        let options = Options::default().code_cache(cache.clone());
        for (source, expected) in models {
            assert_eq!(evaluate(source, &options), expected, "{source}");
        }
        let all = models.len() as u64;
        assert_eq!(counted(&cache), if round == 0 { (0, all, 0) } else { (all, 0, 0) });
    }
    assert_eq!(files(folder.path()).len(), models.len());
}

#[test]
fn what_the_code_depends_on_is_in_the_key() {
    let _alone = crate::alone();
    let folder = private();
    let cache = open(folder.path());
    let options = Options::default().code_cache(cache.clone());
    let limits = Limits::default().code_bytes(1 << 20);
    let variants = [
        (PLUS, options.clone()),
        (PLUS, options.clone().tier(Tier::Quick)),
        (PLUS, options.clone().limits(limits)),
        ("input x: f64; x + 1.0000000000000002", options.clone()),
        ("input x: f64; x - 1.0", options.clone()),
        ("input x: f64; 1.0 - x", options.clone()),
        ("input x: f64; output a = x + 1.0; output b = x", options.clone()),
        ("input x: f64; output a = x; output b = x + 1.0", options.clone()),
        ("input x: f64; where(x > 1.0, x, 2.0)", options.clone()),
        ("input x: f64; where(x > 1.0, 2.0, x)", options.clone()),
    ];
    for (at, (source, options)) in variants.iter().enumerate() {
        evaluate(source, options);
        assert_eq!(counted(&cache), (0, at as u64 + 1, 0), "{source}");
    }
    // Names are not.
    evaluate("input y: f64; output other = y + 1.0", &options);
    assert_eq!(cache.counters().hits, 1);
}

#[test]
fn where_structs_have_their_fields_is_in_the_key() {
    let _alone = crate::alone();
    #[derive(cembra::Input)]
    #[repr(C)]
    struct AsWritten {
        n: i32,
        x: f64,
    }
    #[derive(cembra::Input)]
    struct Reordered {
        n: i32,
        x: f64,
    }
    #[derive(cembra::Output)]
    #[repr(C)]
    struct Rising {
        a: i32,
        b: f64,
    }
    #[derive(cembra::Output)]
    struct Packed {
        a: i32,
        b: f64,
    }
    // Otherwise it would be the same code, and rightly so.
    assert_ne!(std::mem::offset_of!(AsWritten, n), std::mem::offset_of!(Reordered, n));
    assert_ne!(std::mem::offset_of!(Rising, a), std::mem::offset_of!(Packed, a));
    let folder = private();
    let cache = open(folder.path());
    let options = Options::default().backend(Backend::Native).code_cache(cache.clone());
    let model = Model::parse("input n: i32, x: f64; output a = n + 1; output b = x * 2.0").expect("a model");
    let (written, reordered) = (AsWritten { n: 3, x: 5.0 }, Reordered { n: 3, x: 5.0 });
    let one = model.executor::<AsWritten, Rising>(&options).expect("code").run(&written).expect("values");
    let two = model.executor::<AsWritten, Packed>(&options).expect("code").run(&written).expect("values");
    let three = model.executor::<Reordered, Packed>(&options).expect("code").run(&reordered).expect("values");
    assert_eq!([(one.a, one.b), (two.a, two.b), (three.a, three.b)], [(4, 10.0); 3]);
    assert_eq!(counted(&cache), (0, 3, 0));
}

#[test]
fn damaged_swapped_and_strange_entries_are_misses() {
    let _alone = crate::alone();
    let folder = private();
    let cache = open(folder.path());
    let options = Options::default().code_cache(cache.clone());
    evaluate(PLUS, &options);
    let plus = files(folder.path()).remove(0);
    let good = fs::read(&plus).expect("read");
    evaluate(TIMES, &options);
    let times = files(folder.path()).into_iter().find(|file| *file != plus).expect("the other");

    let mut damages: Vec<Vec<u8>> = [0, 1, 15, 16, 47, 48, good.len() - 1].map(|length| good[..length].to_vec()).into();
    for at in [0, 16, 48, good.len() - 1] {
        let mut damaged = good.clone();
        damaged[at] ^= 0x40;
        damages.push(damaged);
    }
    damages.push(fs::read(&times).expect("read"));
    damages.push(vec![0xcc; 1 << 20]);
    for (at, bytes) in damages.iter().enumerate() {
        fs::write(&plus, bytes).expect("written");
        let before = counted(&cache);
        assert_eq!(evaluate(PLUS, &options), "4.5", "damage {at}");
        assert_eq!(counted(&cache), (before.0, before.1 + 1, before.2 + 1), "damage {at}");
        assert_eq!(fs::read(&plus).expect("read"), good, "a miss mends the entry");
    }
    fs::remove_file(&plus).expect("removed");
    fs::create_dir(&plus).expect("made");
    assert_eq!(evaluate(PLUS, &options), "4.5", "a folder in its place");
    fs::remove_dir(&plus).expect("removed");
    symlink(&times, &plus).expect("linked");
    assert_eq!(evaluate(PLUS, &options), "4.5", "a link in its place");
    fs::remove_dir_all(folder.path()).expect("removed");
    assert_eq!(evaluate(PLUS, &options), "4.5", "nowhere to write");
}

#[test]
fn many_writers_and_readers_at_once() {
    let _alone = crate::alone();
    let folder = private();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let folder = folder.path();
            scope.spawn(move || {
                let options = Options::default().code_cache(CodeCache::open_within(folder, 4000).expect("private"));
                for round in 0..40 {
                    let term = (thread + round) % 10;
                    let found = evaluate(&format!("input x: f64; x * {term}.0 + 0.25"), &options);
                    assert_eq!(found, format!("{:?}", 3.5 * f64::from(term) + 0.25));
                }
            });
        }
    });
}

#[test]
fn the_oldest_files_make_room() {
    let _alone = crate::alone();
    let folder = private();
    // What processes left behind that ended while they wrote.
    let part = |name: &str, size| {
        let path = folder.path().join(format!(".cembra-{name}.part"));
        fs::write(&path, [b"cembra code  01\n".as_slice(), &vec![0; size]].concat()).expect("written");
        path
    };
    let old = File::options().write(true).open(part("old", 100_000)).expect("opened");
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("set");
    let young = part("young", 1000);
    let cache = CodeCache::open_within(folder.path(), 4000).expect("private");
    assert_eq!(files(folder.path()), [young], "counted when it is opened");
    let options = Options::default().code_cache(cache);
    for term in 0..100 {
        evaluate(&format!("input x: f64; x + {term}.5"), &options);
        let held: u64 = files(folder.path()).iter().map(|file| file.metadata().expect("a file").len()).sum();
        assert!((1..=4000).contains(&held), "{held} bytes");
    }
}

#[test]
fn folders_that_others_can_reach_are_refused() {
    let _alone = crate::alone();
    let refusal = |path: &Path| {
        let error = CodeCache::open(path).expect_err("refused");
        (error.code().as_str(), error.message().to_owned())
    };
    let folder = private();
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    for open in [0o701, 0o710, 0o770, 0o755, 0o777] {
        mode(folder.path(), open);
        let (code, message) = refusal(folder.path());
        assert!(code == "code-cache" && message.ends_with("other users can access the folder"), "{message}");
    }
    let inner = folder.path().join("made/inner");
    let (_, message) = refusal(&inner);
    assert!(message.contains("other users can replace the folder"), "{message}");
    mode(folder.path(), 0o1777);
    open(&inner);
    mode(folder.path(), 0o755);
    open(&inner);
    let link = folder.path().join("link");
    symlink(&inner, &link).expect("linked");
    open(&link);
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    assert_eq!(refusal(&file).0, "code-cache");
}

#[test]
fn user_operators_are_looked_up_anew_and_their_rules_go_past_the_cache() {
    let _alone = crate::alone();
    let folder = private();
    let run = |registry: Registry, cache: &CodeCache| {
        let registry = registry.leak();
        let source = "input x: f64; my.own(x) + 1.0";
        let model = Model::parse_with(source, registry, &Limits::default()).expect("a model");
        let options = Options::default().registry(registry).backend(Backend::Native).code_cache(cache.clone());
        shown(&model.compile(&options).expect("compiled").session().evaluate(&[Value::from(3.5)]).expect("run")[0])
    };
    let with = |operator: UserOperator| {
        let mut registry = Registry::standard().clone();
        registry.register(operator).expect("registered");
        registry
    };
    let cache = open(folder.path());
    let calls = |factor: f64| with(UserOperator::new("my.own").function(move |x: f64| x * factor));
    assert_eq!((run(calls(2.0), &cache), run(calls(3.0), &cache)), ("8.0".to_owned(), "11.5".to_owned()));
    assert_eq!(counted(&cache), (1, 1, 0));
    let rule = |negate: bool| {
        let rule: fn(&mut Tape, &[Cell]) -> Cell = if negate {
            |tape, args| {
                let x = args[0].val(tape);
                Cell::num(tape.un(Un::Neg, x))
            }
        } else {
            |_, args| args[0]
        };
        with(UserOperator::new("my.own").with_rule(move |x: f64| if negate { -x } else { x }, rule))
    };
    assert_eq!((run(rule(false), &cache), run(rule(true), &cache)), ("4.5".to_owned(), "-2.5".to_owned()));
    assert_eq!((counted(&cache), cache.counters().bypassed), ((1, 1, 0), 2));
}

#[test]
fn what_is_not_of_the_cache_is_not_removed() {
    let _alone = crate::alone();
    let folder = private();
    evaluate(PLUS, &Options::default().code_cache(open(folder.path())));
    let entry = files(folder.path()).remove(0);
    let name = |first: &str| format!("{first}{}", &entry.file_name().expect("a name").to_str().expect("UTF-8")[1..]);
    let large = vec![b'x'; 100_000];
    // Of another name, of a name that is almost one of an entry, and of such a name but no entry.
    let strangers = ["notes.txt", &name("x"), &name("f").replace(".code", ".coda"), &name("0"), &name("1"), ".tmpabc"];
    for stranger in strangers {
        let path = folder.path().join(stranger);
        if path != entry {
            fs::write(&path, &large).expect("written");
            let old = std::time::SystemTime::UNIX_EPOCH;
            File::options().write(true).open(&path).and_then(|file| file.set_modified(old)).expect("an old file");
        }
    }
    // Large enough for no entry at all.
    let cache = CodeCache::open_within(folder.path(), 1).expect("a cache");
    assert!(!entry.exists());
    for stranger in strangers.iter().map(|name| folder.path().join(name)).filter(|path| *path != entry) {
        assert_eq!(fs::read(&stranger).expect("still there"), large, "{}", stranger.display());
    }
    evaluate(PLUS, &Options::default().code_cache(cache));
}

#[test]
#[cfg(target_os = "linux")]
fn an_entry_that_is_larger_than_code_may_be_is_not_read() {
    let _alone = crate::alone();
    let folder = private();
    let options = Options::default().limits(Limits::default().code_bytes(1 << 20));
    let cached = || {
        let cache = open(folder.path());
        (options.clone().code_cache(cache.clone()), cache)
    };
    let (with, _) = cached();
    let expected = evaluate(PLUS, &with);
    let entry = files(folder.path()).remove(0);
    // A hole of 200 MiB takes no room until somebody reads it.
    File::options().write(true).open(&entry).and_then(|file| file.set_len(200 << 20)).expect("a long file");
    let before = crate::peak();
    let (with, cache) = cached();
    assert_eq!(evaluate(PLUS, &with), expected);
    assert_eq!(counted(&cache), (0, 1, 1));
    // The kernel counts pages by thread, and adds them up late: the peak that it gives may be a little lower than the one before.
    assert!(crate::peak().saturating_sub(before) < 100 << 10, "{before} {}", crate::peak());
    assert!(fs::metadata(&entry).expect("made anew").len() < 1 << 20);
    // A pipe that nobody writes to would be waited for.
    fs::remove_file(&entry).expect("removed");
    assert!(std::process::Command::new("mkfifo").arg(&entry).status().expect("a command").success());
    let (with, cache) = cached();
    assert_eq!((evaluate(PLUS, &with), counted(&cache)), (expected, (0, 1, 1)));
}
