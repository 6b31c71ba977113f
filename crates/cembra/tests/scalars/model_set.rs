//! Tests model sets: which models a reload replaces, which stay, and the errors for broken files.

use cembra::operators::Registry;
use cembra::program::{Folder, Sources};
use cembra::{Backend, Error, Executor, Limits, Model, ModelSet, Options, Value};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn write(folder: &Path, files: &[(&str, &str)]) -> std::io::Result<()> {
    files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
}

/// Loads the models of a folder as executors, and returns the set with a counter of the executors made.
fn counted(folder: &Path) -> Result<(ModelSet<Executor>, Arc<AtomicUsize>), Error> {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let set = ModelSet::load_with(folder, move |_, model| {
        count.fetch_add(1, Ordering::Relaxed);
        model.compile(&Options::default().backend(Backend::Interpreter))
    })?;
    Ok((set, made))
}

fn answer(set: &ModelSet<Executor>, model: &str) -> Option<Value> {
    let results = set.get(model)?.session().evaluate(&[]).ok()?;
    results.into_iter().next()
}

#[test]
fn only_what_changed_is_made_again() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    fs::create_dir(path.join("lib"))?;
    write(
        path,
        &[
            ("a.cem", "1"),
            ("b.cem", "use \"lib/c.cem\"; c"),
            ("d.cem", "table t: i32 -> i32 = \"t.csv\"; lookup(7, t, 0)"),
            ("lib/c.cem", "let c = 2"),
            ("t.csv", "k,v\n7,3\n"),
            ("readme.md", "?"),
            (".#a.cem", "?"),
        ],
    )?;
    let (set, made) = counted(path)?;
    assert_eq!(set.names(), ["a", "b", "d"]);
    assert_eq!(
        ["a", "b", "d", "c"].map(|name| answer(&set, name)),
        [Some(1.into()), Some(2.into()), Some(3.into()), None]
    );
    assert!(set.reload()?.is_empty());
    assert_eq!(made.load(Ordering::Relaxed), 3);

    let old = set.get("b").ok_or("b is there")?;
    write(path, &[("lib/c.cem", "let c = 20"), ("t.csv", "k,v\n7,30\n"), ("e.cem", "5")])?;
    fs::remove_file(path.join("a.cem"))?;
    let reload = set.reload()?;
    assert_eq!(
        (reload.added, reload.replaced, reload.removed),
        (vec!["e".to_owned()], vec!["b".into(), "d".into()], vec!["a".into()])
    );
    assert!(reload.failed.is_empty());
    assert_eq!(
        ["a", "b", "d", "e"].map(|name| answer(&set, name)),
        [None, Some(20.into()), Some(30.into()), Some(5.into())]
    );
    assert_eq!(made.load(Ordering::Relaxed), 6);
    // Who has the old one keeps it.
    assert_eq!(old.session().evaluate(&[])?, [Value::from(2)]);
    assert_eq!(set.all().iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["b", "d", "e"]);
    Ok(())
}

/// The text of a file that several models use is stored once, and a reload that finds the file unchanged keeps this
/// text.
#[test]
fn models_share_the_texts_of_files() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    write(
        path,
        &[("common.cem", "let c = 2"), ("a.cem", "use \"common.cem\"; c"), ("b.cem", "use 'common.cem'; c + 1")],
    )?;
    let set = ModelSet::load(path)?;
    let common = |model: &str| {
        let model = set.get(model)?;
        let (name, text) = model.sources()?.texts().last()?;
        name.ends_with("common.cem").then(|| text.clone())
    };
    let first = common("a").ok_or("a is there")?;
    assert!(common("b").is_some_and(|text| Arc::ptr_eq(&text, &first)));
    write(path, &[("b.cem", "use 'common.cem'; c + 2"), ("d.cem", "use 'common.cem'; c + 3")])?;
    let reload = set.reload()?;
    assert_eq!((reload.added, reload.replaced), (vec!["d".to_owned()], vec!["b".to_owned()]));
    assert!(["a", "b", "d"].iter().all(|name| common(name).is_some_and(|text| Arc::ptr_eq(&text, &first))));
    write(path, &[("common.cem", "let c = 3")])?;
    assert_eq!(set.reload()?.replaced, ["a", "b", "d"]);
    let second = common("a").ok_or("a is there")?;
    assert!(*second == *"let c = 3" && common("d").is_some_and(|text| Arc::ptr_eq(&text, &second)));
    Ok(())
}

#[test]
fn a_broken_file_keeps_the_old_model_and_tells_why() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    write(path, &[("a.cem", "use \"c.cem\"; c"), ("c.cem", "let c = 2"), ("b.cem", "let x = 1")])?;
    let (set, _) = counted(path)?;
    // A part of others is no model; what nobody uses and has no output is a mistake.
    assert_eq!(set.names(), ["a"]);
    let failed = |set: &ModelSet<Executor>| -> Result<Vec<(String, &'static str, String)>, Error> {
        let lines = |shown: String| shown.lines().take(2).map(str::trim).collect::<Vec<_>>().join(" ");
        let reload = set.reload()?;
        assert!(reload.added.is_empty() && reload.replaced.is_empty() && reload.removed.is_empty(), "{reload:?}");
        Ok(reload
            .failed
            .iter()
            .map(|one| (one.name().to_owned(), one.error().code(), lines(one.to_string())))
            .collect())
    };
    let place = |name: &str| path.join(name).display().to_string();
    let b = ("b".to_owned(), "no-output", format!("error[no-output]: the model has no output --> {}", place("b.cem")));
    let told = failed(&set)?;
    assert_eq!(told.len(), 1);
    assert_eq!((&*told[0].0, told[0].1), ("b", b.1));
    fs::remove_file(path.join("b.cem"))?;

    // The mistake is in the file that the model uses, and shown there.
    write(path, &[("c.cem", "let d = 1\nlet c = d +")])?;
    let told = failed(&set)?;
    let (names, codes): (Vec<_>, Vec<_>) = told.iter().map(|(name, code, _)| (&**name, *code)).unzip();
    assert_eq!((names, codes), (vec!["a", "c"], vec!["syntax", "syntax"]));
    assert!(told[0].2.ends_with(&format!("--> {}:2:12", place("c.cem"))), "{told:?}");
    assert_eq!(answer(&set, "a"), Some(2.into()));
    // It is told again for as long as it is so.
    assert_eq!(failed(&set)?, told);

    for bytes in [&b"\xff"[..], b"use \"gone.cem\"; 1", b"let c = missing"] {
        fs::write(path.join("a.cem"), bytes)?;
        assert_eq!(set.reload()?.failed[0].name(), "a");
        assert_eq!(answer(&set, "a"), Some(2.into()));
    }
    write(path, &[("a.cem", "use \"c.cem\"; c"), ("c.cem", "let c = 2")])?;
    assert!(set.reload()?.is_empty());
    Ok(())
}

#[test]
fn what_is_made_of_a_model_may_refuse_it() -> Outcome {
    let folder = tempfile::tempdir()?;
    write(folder.path(), &[("a.cem", "input x: f64\noutput y = x / 2.0\ntest \"half\" { x = 1 } => { y = 0.5 }")])?;
    let tested = |_: &str, model: &Model| {
        let report = model.run_tests(&Options::default());
        match report.failures.first() {
            Some(failure) => Err(Error::values(format!("its test \"{}\" fails", failure.test))),
            None => Ok(model.clone()),
        }
    };
    let set = ModelSet::load_with(folder.path(), tested)?;
    assert_eq!(set.names(), ["a"]);
    write(folder.path(), &[("a.cem", "input x: f64\noutput y = x / 3.0\ntest \"half\" { x = 1 } => { y = 0.5 }")])?;
    let reload = set.reload()?;
    assert_eq!(reload.failed[0].error().to_string(), "its test \"half\" fails");
    assert_eq!(set.get("a").and_then(|model| model.source().map(|text| text.contains("2.0"))), Some(true));
    Ok(())
}

/// Only regular files are read: reading a pipe without a writer would wait forever, and a folder is not a text.
#[test]
#[cfg(target_os = "linux")]
fn only_regular_files_are_read() -> Outcome {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let folder = tempfile::tempdir()?;
    let pipe = folder.path().join("pipe.txt");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    fs::create_dir(folder.path().join("inner.txt"))?;
    let files = Folder::new(folder.path(), 1 << 20);
    for (name, kind) in [("pipe.txt", "a pipe, a socket or a device"), ("inner.txt", "a folder")] {
        let sources = Sources::gather("m.cem", format!("use \"{name}\"; 1"), &Limits::default(), &files);
        let error = Model::parse_sources(sources, Registry::standard(), &Limits::default()).expect_err("no text");
        assert!(error.to_string().contains(&format!("expected a file, found {kind}")), "{error}");
    }
    Ok(())
}

/// Links within the folder are followed, because Kubernetes mounts files as such links. Links that lead out of the
/// folder are rejected.
#[test]
#[cfg(unix)]
fn links_that_lead_out_of_the_folder_are_refused_for_models_and_for_used_files() -> Outcome {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir()?;
    write(outside.path(), &[("secret.cem", "a secret of the host"), ("part.cem", "let vat = 0.5")])?;
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    fs::create_dir(path.join("now"))?;
    write(&path.join("now"), &[("a.cem", "use \"part.cem\"; 2.0 * vat"), ("part.cem", "let vat = 0.5")])?;
    write(path, &[("user.cem", "use \"out/part.cem\"; 2.0 * vat")])?;
    symlink("now", path.join("..data"))?;
    symlink("..data/a.cem", path.join("a.cem"))?;
    symlink(path.join("now/part.cem"), path.join("part.cem"))?;
    symlink(outside.path().join("secret.cem"), path.join("secret.cem"))?;
    symlink(outside.path(), path.join("out"))?;
    let set = ModelSet::load(path)?;
    assert_eq!(set.names(), ["a"]);
    let failed = set.reload()?.failed;
    assert_eq!(failed.iter().map(cembra::FailedModel::name).collect::<Vec<_>>(), ["secret", "user"]);
    for one in failed {
        let shown = one.to_string();
        assert!(
            shown.contains("the file is a link that leads out of the folder") && !shown.contains("of the host"),
            "{shown}"
        );
    }
    Ok(())
}

#[test]
fn a_folder_that_is_not_there_is_an_error() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("models");
    let error = ModelSet::load(&path).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "use");
    assert!(error.to_string().contains("cannot be read"), "{error}");
    fs::create_dir(&path)?;
    write(&path, &[("a.cem", "12345678")])?;
    let set = ModelSet::load(&path)?;
    fs::remove_dir_all(&path)?;
    assert_eq!(set.reload().map(|_| ()).unwrap_err().code(), "use");
    // The set is as it was.
    assert_eq!(set.names(), ["a"]);

    fs::create_dir(&path)?;
    write(&path, &[("a.cem", "1234567"), ("b.cem", "12345678")])?;
    let limits = Limits::default().source_bytes(7);
    let set = ModelSet::load_within(&path, Registry::standard(), &limits, |_, model| Ok(model.clone()))?;
    assert_eq!(set.names(), ["a"]);
    assert_eq!(set.reload()?.failed[0].error().code(), "limit");
    Ok(())
}

#[test]
fn readers_see_one_moment() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path();
    write(path, &[("a.cem", "0"), ("b.cem", "0")])?;
    let set = ModelSet::load_with(path, |_, model| Ok(model.source().unwrap_or_default().to_owned()))?;
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| -> std::io::Result<()> {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while done.load(Ordering::Acquire) == 0 {
                        let all = set.all();
                        assert_eq!(all.len(), 2);
                        assert_eq!(all[0].1, all[1].1, "both models of one moment");
                    }
                })
            })
            .collect();
        let rewritten = (1..60).try_for_each(|at| {
            write(path, &[("a.cem", &at.to_string()), ("b.cem", &at.to_string())])?;
            set.reload().map(|_| ()).map_err(std::io::Error::other)
        });
        done.store(1, Ordering::Release);
        for reader in readers {
            reader.join().map_err(|_| std::io::Error::other("a reader saw halves"))?;
        }
        rewritten
    })?;
    assert_eq!(set.get("a").as_deref().map(String::as_str), Some("59"));
    Ok(())
}
