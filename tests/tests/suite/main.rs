//! The suites: every case of `suite/*.toml` in all backends and tiers, each a test of its own. A case also runs without the
//! optional passes, so that constants are computed by the backend too and no result hangs on a rewrite; and native code is
//! also made of functions of a few steps, and by the quick tier.

mod adapter;
mod case;

use adapter::Adapter;
use case::{Case, File};
use cembra::Backend;
use cembra::native::Tier;
use cembra_tests::backend::BACKENDS;
use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Cases that are not run in some backend. Each says why.
const SKIPPED: usize = 0;

fn main() -> ExitCode {
    let cases = match read() {
        Ok(cases) => cases,
        Err(message) => {
            let trial = Trial::test("the suites can be read", move || Err(message.into()));
            return libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code();
        }
    };
    let mut trials: Vec<Trial> = cases.iter().flat_map(|(file, case)| BACKENDS.map(|b| trial(file, case, b))).collect();
    let skipped = trials.iter().filter(|trial| trial.has_ignored_flag()).count();
    trials.push(Trial::test("as many cases are skipped as are known", move || {
        if skipped == SKIPPED { Ok(()) } else { Err(format!("{skipped} are skipped, {SKIPPED} are known").into()) }
    }));
    let names: Vec<String> = cases.iter().map(|(file, case)| format!("{file}::{}", case.name)).collect();
    trials.push(Trial::test("names are unique", move || {
        let mut sorted = names.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("{} is there twice", pair[0]).into()),
            None => Ok(()),
        }
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(file: &str, case: &Case, backend: Backend) -> Trial {
    let name = format!("{file}::{} ({})", case.name, backend.name());
    let ignored = case.skip.is_some();
    let case = case.clone();
    let test = move || {
        let usual = Adapter { backend, without: &[], tier: Tier::Optimised, native_steps: 2_000 };
        usual.run(&case)?;
        let plain = Adapter { without: &["fold", "optimise"], ..usual };
        if case.needs.is_empty() {
            plain.run(&case).map_err(|error| format!("without optional passes: {error}"))?;
        }
        if backend == Backend::Native {
            let cut = Adapter { native_steps: 4, ..if case.needs.is_empty() { plain } else { usual } };
            cut.run(&case).map_err(|error| format!("in many functions: {error}"))?;
            let quick = Adapter { tier: Tier::Quick, ..usual };
            quick.run(&case).map_err(|error| format!("in the quick tier: {error}"))?;
        }
        Ok(())
    };
    Trial::test(name, test).with_ignored_flag(ignored)
}

/// All cases with the names of their files.
fn read() -> Result<Vec<(String, Case)>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        let file: File = toml::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        cases.extend(file.case.into_iter().map(|case| (name.clone(), case)));
    }
    Ok(cases)
}
