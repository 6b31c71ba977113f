//! The invariants of `docs/architecture.md` and `docs/safety.md` that can be checked by reading: which crate depends on
//! which, what is documented, how long files are, where `unsafe` is.

use crate::modules::{circle, exports, uses};
use cembra::operators::Registry;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most test programs: each links all that it tests.
const MOST_TEST_PROGRAMS: usize = 30;

/// The longest a source file of the library may be, in lines.
const LONGEST: usize = 1000;

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace").to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

struct Package {
    name: String,
    /// The folder, as the code map writes it.
    folder: String,
    dependencies: Vec<String>,
    json: Json,
}

/// The members of the workspace.
fn packages() -> Vec<Package> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]).current_dir(root());
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |json: &Json, key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let found = metadata["packages"].as_array().expect("packages");
    found
        .iter()
        .map(|package| {
            let manifest = PathBuf::from(text(package, "manifest_path"));
            let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root()).ok()).expect("a member");
            let folder = folder.to_string_lossy().replace('\\', "/");
            // Tests, and examples in documentation, may use what is above.
            let dependencies = package["dependencies"].as_array().expect("dependencies").iter();
            let built_on = dependencies.filter(|dependency| dependency["kind"] != "dev");
            let dependencies = built_on.map(|dependency| text(dependency, "name")).collect();
            Package { name: text(package, "name"), folder, dependencies, json: package.clone() }
        })
        .collect()
}

/// The folders of the code map, in its order.
fn code_map() -> Vec<String> {
    let text = read("docs/architecture.md");
    let (_, rest) = text.split_once("## Code map").expect("the code map");
    let (map, _) = rest.split_once("\n## ").expect("the next section");
    let folder = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    map.lines().filter_map(folder).collect()
}

/// All source files of the workspace, with their paths from its root.
pub(super) fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["runtime", "crates", "tests", "benches", "docs", "fuzz"].map(|name| root().join(name)).into();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).expect("inside").to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).expect("a text")));
            }
        }
    }
    found.sort();
    assert!(found.len() > 80, "{} files", found.len());
    found
}

/// The lines of a file that are not comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

pub(super) fn is_library(name: &str) -> bool {
    name.starts_with("runtime/src/") || (name.starts_with("crates/") && name.contains("/src/"))
}

/// The most words of the page on architecture: one sitting. Reasons are on a page for each part.
const MOST_WORDS: usize = 2500;

#[test]
fn the_page_on_architecture_is_read_in_one_sitting() {
    let words = read("docs/architecture.md").split_whitespace().count();
    assert!((1000..=MOST_WORDS).contains(&words), "{words}");
}

/// The public modules of the library, and their files.
const PUBLIC: [(&str, &str); 6] = [
    ("", "crates/cembra/src/lib.rs"),
    ("json", "crates/cembra/src/json/mod.rs"),
    ("operators", "crates/cembra/src/operators/mod.rs"),
    ("operators::reference", "crates/cembra/src/operators/reference.rs"),
    ("tiles", "crates/cembra/src/tiles/mod.rs"),
    ("tiles::link", "crates/tiles/src/link/mod.rs"),
];

/// The library exports each name for one type, whichever modules the types are in, except for the names in the list. A derive macro has the name of
/// its trait. The list may only become shorter.
#[test]
fn no_other_names_are_exported_twice() {
    const TWICE: [&str; 4] = ["FieldType", "Input", "Options", "Output"];
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, file) in PUBLIC {
        let text = read(file);
        for name in code(&text).filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
            let path = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
            assert!(PUBLIC.iter().any(|(module, _)| *module == path), "the module `{path}` is not looked at");
        }
        for (_, name, path) in exports(module, &text) {
            let from = path.strip_prefix("cembra_tensor::Tensor").map_or(path.as_str(), |_| "cembra_value::Tensor");
            seen.entry(name).or_default().insert(from.to_owned());
        }
    }
    assert!(seen.len() > 200, "{}", seen.len());
    let twice: Vec<&str> = seen.iter().filter(|(_, from)| from.len() > 1).map(|(name, _)| &**name).collect();
    assert_eq!(twice, TWICE);
}

/// The most names on the first page of the library's documentation: types, derive macros and modules.
const MOST_NAMES: usize = 60;

#[test]
fn the_first_page_of_the_library_is_short() {
    let text = read("crates/cembra/src/lib.rs");
    let types = exports("", &text).into_iter().filter(|(module, ..)| module.is_empty()).count();
    let modules = text.split("#[doc(hidden)]\npub mod ").collect::<String>().matches("\npub mod ").count();
    assert!((30..=MOST_NAMES).contains(&(types + modules)), "{types} types and derive macros, {modules} modules");
}

/// Names that say nothing of what a type is.
const VAGUE: [&str; 32] = [
    "Made", "Held", "Place", "Part", "Kept", "Run", "Way", "Given", "Written", "Seen", "Known", "Wanted", "Told",
    "Found", "Whole", "Read", "Ahead", "Apart", "Around", "Back", "Bare", "Beside", "Beyond", "Carry", "Gathered",
    "Played", "Soon", "Sought", "Swept", "Together", "Twice", "Wrong",
];

/// The number of types with such a name in each crate that has any. The numbers may only become smaller.
const VAGUELY_NAMED: [(&str, usize); 4] =
    [("crates/cembra", 1), ("crates/cli", 1), ("crates/ops", 3), ("crates/tiles", 5)];

#[test]
fn types_are_named_by_what_they_are() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| is_library(path)) {
        let count = code(&text).filter(|line| {
            let line = line.trim_start();
            let line = match line.strip_prefix("pub(") {
                Some(rest) => rest.split_once(") ").map_or("", |(_, rest)| rest),
                None => line.strip_prefix("pub ").unwrap_or(line),
            };
            let declared = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| line.strip_prefix(kind));
            declared.is_some_and(|rest| {
                VAGUE.contains(&rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default())
            })
        });
        let count = count.count();
        if count > 0 {
            let name = path.split_once("/src/").map_or("", |(name, _)| name);
            *found.entry(name.to_owned()).or_default() += count;
        }
    }
    let found: Vec<(&str, usize)> = found.iter().map(|(name, count)| (&**name, *count)).collect();
    assert_eq!(found, VAGUELY_NAMED);
}

/// Lists and tables behind a lock outlive the call that fills them: caches and pools. Without a bound they grow with what a process has seen.
#[test]
fn what_is_kept_behind_a_lock_has_a_bound() {
    const LOCKS: [&str; 4] = ["Mutex<", "RwLock<", "OnceLock<", "ArcSwap<"];
    const LISTS: [&str; 6] = ["Map<", "Set<", "Vec<", "Entries<", "Deque<", "Table<"];
    let keeps = |line: &str| {
        let lock = LOCKS.iter().find_map(|lock| line.split_once(lock));
        let is_field = line.trim_end().ends_with(',') || line.trim_start().starts_with("static ");
        is_field && line.contains(": ") && lock.is_some_and(|(_, rest)| LISTS.iter().any(|list| rest.contains(list)))
    };
    let apart = ["cli", "fuzzing", "lsp", "derive"].map(|name| format!("crates/{name}/"));
    let mut unbounded = Vec::new();
    let mut seen = 0;
    for (name, text) in sources().into_iter().filter(|(name, _)| is_library(name)) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            if apart.iter().any(|apart| name.starts_with(apart)) || code.starts_with("//") || !keeps(line) {
                continue;
            }
            seen += 1;
            let said = lines[..at].iter().rev().take_while(|line| {
                let line = line.trim_start();
                line.starts_with("///") || line.starts_with("#[")
            });
            if !said.into_iter().any(|line| line.to_ascii_lowercase().contains("at most")) {
                unbounded.push(format!("{name}:{}: {code}", at + 1));
            }
        }
    }
    assert!(seen >= 8, "{seen}");
    assert!(
        unbounded.is_empty(),
        "say in the comment that there are at most so many, and why:\n{}",
        unbounded.join("\n")
    );
}

#[test]
fn members_are_the_documented_ones() {
    let members: BTreeSet<String> = packages().into_iter().map(|package| package.folder).collect();
    let documented: BTreeSet<String> = code_map().into_iter().collect();
    assert_eq!(members, documented);
}

#[test]
fn dependencies_run_only_upward() {
    let packages = packages();
    let map = code_map();
    let place = |folder: &str| map.iter().position(|known| known == folder).expect("in the code map");
    let by_name: BTreeMap<&str, usize> =
        packages.iter().map(|package| (package.name.as_str(), place(&package.folder))).collect();
    for package in &packages {
        for dependency in &package.dependencies {
            if let Some(above) = by_name.get(dependency.as_str()) {
                assert!(*above < place(&package.folder), "{} depends on {dependency}", package.name);
            }
        }
    }
    assert_eq!(by_name.len(), map.len());
}

/// The crates of the project that a crate is built on, directly or not.
fn below(name: &str) -> BTreeSet<String> {
    let packages = packages();
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let Some(package) = packages.iter().find(|package| package.name == name) else { continue };
        let used = package.json["dependencies"].as_array().expect("dependencies").iter();
        // What only tests need has another kind.
        let built_on = used.filter(|dependency| dependency["kind"].is_null());
        for dependency in built_on.map(|dependency| dependency["name"].as_str().expect("a name").to_owned()) {
            if found.insert(dependency.clone()) {
                open.push(dependency);
            }
        }
    }
    found
}

/// What a crate states in its own manifest to be built on.
fn stated(name: &str) -> BTreeSet<String> {
    let packages = packages();
    let package = packages.iter().find(|package| package.name == name).expect("a member");
    let used = package.json["dependencies"].as_array().expect("dependencies").iter();
    let built_on = used.filter(|dependency| dependency["kind"].is_null());
    built_on.map(|dependency| dependency["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn players_know_tapes_and_plans_but_no_operators() {
    for player in ["cembra-native", "cembra-interp"] {
        let named = stated(player);
        for foreign in ["cembra-ops", "cembra-expr", "cembra-prepare"] {
            assert!(!named.contains(foreign), "{player} names {foreign}");
        }
    }
    let below_tape = below("cembra-tape");
    for foreign in ["cembra-ops", "cembra-expr", "cembra-plan"] {
        assert!(!below_tape.contains(foreign), "{foreign} is below the tape");
    }
    for neutral in ["cembra-tape", "cembra-record"] {
        let code_generator = below(neutral).into_iter().find(|name| name.contains("cranelift"));
        assert_eq!(code_generator, None, "below {neutral}");
    }
}

/// The number of modules that are in circles or between two circles, at the depths 1, 2 and 3, in each crate that has any. The list may only become
/// shorter, and its numbers smaller.
const IN_CIRCLES: [(&str, [usize; 3]); 5] = [
    ("crates/expr", [5, 16, 27]),
    ("crates/ops", [21, 23, 23]),
    ("crates/tensor", [6, 10, 10]),
    ("crates/value", [7, 6, 6]),
    ("runtime", [4, 4, 4]),
];

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let crates: BTreeSet<String> = sources()
        .into_iter()
        .filter_map(|(path, _)| Some(path.split_once("/src/")?.0.to_owned()))
        .filter(|name| name == "runtime" || name.starts_with("crates/"))
        .collect();
    assert!(crates.len() >= 21, "{crates:?}");
    for name in crates {
        let known = IN_CIRCLES.iter().find(|(known, _)| *known == name).map_or([0; 3], |(_, known)| *known);
        for (depth, most) in (1..).zip(known) {
            let found = circle(&uses(&name, depth));
            assert_eq!(found.len(), most, "{name}, modules of depth {depth}: {found:#?}");
        }
    }
}

/// The engine has few modules of depth 1, few uses between them, and no long chain of uses. Circles are counted with those of all crates.
#[test]
fn the_engine_has_few_rooms() {
    let uses = uses("crates/engine", 1);
    let rooms: BTreeSet<&String> = uses.iter().flat_map(|(from, to)| to.iter().chain([from])).collect();
    assert!((8..=14).contains(&rooms.len()), "{rooms:?}");
    let count: usize = uses.values().map(BTreeSet::len).sum();
    assert!((20..=70).contains(&count), "{uses:#?}");
    // Without circles, a chain is at most as long as the number of rooms.
    let mut longest: BTreeMap<&String, usize> = rooms.iter().map(|room| (*room, 1)).collect();
    for _ in 0..rooms.len() {
        for (from, to) in &uses {
            let behind = to.iter().map(|room| longest[room]).max().unwrap_or(0);
            longest.insert(from, behind + 1);
        }
    }
    let chain = longest.values().max().copied().unwrap_or(0);
    assert!((3..=10).contains(&chain), "a chain of {chain} rooms: {longest:?}");
}

/// Cached machine code is kept under a hash of the sources that made it: those of `cembra-native`, and of the crates below it but for those that make
/// a plan, because a plan is hashed itself. So it stays valid when files of other crates move.
#[test]
fn cached_code_depends_on_the_crates_that_make_it() {
    let made_by = below("cembra-native").into_iter().filter(|name| name.starts_with("cembra-"));
    let mut made_by: BTreeSet<String> = made_by.chain(["cembra-native".to_owned()]).collect();
    for planning in ["cembra-expr", "cembra-prepare"] {
        assert!(made_by.remove(planning), "{planning} is not below the backend");
    }
    let script = read("crates/native/build.rs");
    let folders = script.split_once("const FOLDERS").and_then(|(_, rest)| rest.split_once("];")).expect("a list").0;
    let hashed: BTreeSet<String> = folders
        .split('"')
        .filter_map(|folder| folder.strip_suffix("src"))
        .map(|folder| folder.trim_matches(['.', '/']).to_owned())
        .map(|folder| format!("cembra-{}", if folder.is_empty() { "native" } else { &folder }))
        .collect();
    assert_eq!(hashed, made_by);
}

#[test]
fn only_native_names_cranelift() {
    for package in packages() {
        let named: Vec<&String> = package.dependencies.iter().filter(|name| name.contains("cranelift")).collect();
        assert_eq!(package.name == "cembra-native", !named.is_empty(), "{} depends on {named:?}", package.name);
    }
    let crates = ["cranelift", "_"].concat();
    for (name, text) in sources() {
        let uses = code(&text).any(|line| line.contains(&crates));
        assert!(!uses || name.starts_with("crates/native/"), "{name}");
    }
}

/// Features of a dependency are on for everybody in a program, so some that `serde_json` has would change what the types of
/// those who use cembra read and write.
#[test]
fn no_member_turns_features_of_serde_json_on() {
    let mut known = 0;
    for package in packages() {
        for dependency in package.json["dependencies"].as_array().expect("dependencies") {
            if dependency["name"] == "serde_json" {
                assert_eq!(dependency["features"], serde_json::json!([]), "{}", package.name);
                known += 1;
            }
        }
        for (feature, turns_on) in package.json["features"].as_object().expect("features") {
            let all = turns_on.as_array().expect("a list").iter().filter_map(Json::as_str);
            let wrong = all.filter(|one| one.starts_with("serde_json/") || one.starts_with("serde_json?/")).count();
            assert_eq!(wrong, 0, "{} by {feature}", package.name);
        }
    }
    assert!(known >= 6, "{known}");
    // Nor does what the library depends on, whichever of its features are on.
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--package", "cembra", "--edges", "normal", "--all-features"]);
    command.args(["--prefix", "none", "--format", "{p} with {f}"]).current_dir(root());
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = tree.lines().filter(|line| line.starts_with("serde_json ")).collect();
    assert!(!lines.is_empty(), "{tree}");
    for line in lines {
        let (_, features) = line.split_once(" with ").expect("features");
        assert_eq!(features.trim_end_matches(" (*)"), "default,std", "{line}");
    }
}

/// The project's own packages with their features, where the command is built together with the packages that the arguments select.
fn below_the_command(selection: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p} with {f}"]);
    let output = command.args(selection).current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let own = tree.lines().filter(|line| line.starts_with("cembra"));
    // A member that is selected itself has its default features, which are those that the command asks for.
    own.map(|line| line.trim_end_matches(" (*)").replace("default,", "").replace(",default", "")).collect()
}

/// `cargo run --bin cembra` builds the command in the workspace, `cargo install --path crates/cli` by itself. A feature that another
/// member asks for would be in the first of them only.
#[test]
fn the_command_is_the_same_by_itself_and_in_the_workspace() {
    let (alone, together) = (below_the_command(&["--package", "cembra-cli"]), below_the_command(&["--workspace"]));
    let other: Vec<_> = alone.difference(&together).collect();
    assert!(other.is_empty(), "with other features in the workspace: {other:?}");
    let library: Vec<_> = alone.iter().filter(|line| line.starts_with("cembra v")).collect();
    assert!(matches!(library[..], [line] if line.ends_with(" with json,matrix-library,mpi,tiles")), "{library:?}");
}

/// Lints and profiles are stated in both workspaces, as neither can take those of the other.
#[test]
fn benchmarks_are_built_as_the_library_is() {
    let stated = |manifest: &str| -> [toml::Table; 2] {
        let mut whole: toml::Table = read(manifest).parse().expect("a manifest");
        let table = |of: &mut toml::Table, name: &str| match of.remove(name) {
            Some(toml::Value::Table(table)) => table,
            _ => panic!("{manifest} has no {name}"),
        };
        [table(&mut table(&mut whole, "workspace"), "lints"), table(&mut whole, "profile")]
    };
    let ([lints, mut profiles], [lints_of_benches, profiles_of_benches]) =
        (stated("Cargo.toml"), stated("benches/Cargo.toml"));
    assert_eq!(lints, lints_of_benches);
    // Cargo warns of packages that a workspace does not have.
    let locked = read("benches/Cargo.lock");
    for profile in ["dev", "release"] {
        let packages = profiles[profile]["package"].as_table_mut().expect("packages");
        packages.retain(|name, _| name == "*" || locked.contains(&format!("name = \"{name}\"\n")));
    }
    assert_eq!(profiles, profiles_of_benches);
}

/// How far names are from each other is measured in one place, which bounds what that takes.
#[test]
fn only_one_file_measures_how_far_names_are() {
    let package = ["str", "sim"].concat();
    for one in packages() {
        let named = one.dependencies.contains(&package);
        assert_eq!(one.name == "cembra-value", named, "{} depends on {package}", one.name);
    }
    for (name, text) in sources() {
        let uses = code(&text).any(|line| line.contains(&format!("{package}::")));
        assert_eq!(name == "crates/value/src/near.rs", uses, "{name}");
    }
}

/// Strict operators are written for bare scalars; what a missing argument does to them is said for kernels and functions on
/// registers in one file, and for rules in another.
#[test]
fn presence_is_applied_in_two_files() {
    for (word, file) in
        [("load_lifted(frame", "kernel.rs"), ("present & required", "kernel.rs"), (".set_active(", "lift.rs")]
    {
        let mut found: Vec<String> = Vec::new();
        for (name, text) in sources() {
            let Some(name) = name.strip_prefix("crates/ops/src/") else { continue };
            let library = text.split("#[cfg(test)]").next().unwrap_or_default();
            if code(library).any(|line| line.contains(word)) {
                found.push(name.to_owned());
            }
        }
        found.retain(|name| name != file);
        assert_eq!(found, Vec::<String>::new(), "`{word}` belongs into {file}");
    }
    let rules = ["kernel.rs", "lift.rs", "typing.rs", "definition.rs"];
    for (name, text) in sources() {
        let Some(name) = name.strip_prefix("crates/ops/src/") else { continue };
        let asks = code(&text).any(|line| line.contains("== PresenceRule::") || line.contains("B::STRICT"));
        assert!(!asks || rules.contains(&name), "{name} asks how missing arguments are treated");
    }
}

#[test]
fn every_package_says_version_and_licence() {
    for package in packages() {
        let name = &package.name;
        assert_eq!(package.json["rust_version"], "1.95", "{name}");
        assert_eq!(package.json["license"], "MIT OR Apache-2.0", "{name}");
        assert_eq!(package.json["edition"], "2024", "{name}");
        assert!(package.json["description"].as_str().is_some_and(|text| text.len() > 20), "{name} has no description");
        assert_eq!(package.json["publish"], serde_json::json!([]), "{name}");
        let manifest = read(format!("{}/Cargo.toml", package.folder));
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name} has lints of its own");
    }
}

#[test]
fn files_say_what_they_are() {
    for (name, text) in sources() {
        let first = text.lines().next().unwrap_or_default();
        // The fuzz targets are shells that begin with the attribute that makes them programs.
        let opens = first.starts_with("//!") || (name.starts_with("fuzz/") && text.contains("//!"));
        assert!(opens, "{name} begins with `{first}`");
    }
}

#[test]
fn test_programs_are_few() {
    let is_test = |target: &&Json| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&Json::from("test")));
    let of_package =
        |package: Package| package.json["targets"].as_array().map_or(0, |all| all.iter().filter(is_test).count());
    let count: usize = packages().into_iter().map(of_package).sum();
    assert!((10..=MOST_TEST_PROGRAMS).contains(&count), "{count}");
}

#[test]
fn files_are_not_long() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(!is_library(&name) || lines <= LONGEST, "{name} has {lines} lines");
    }
}

/// Where parts of a type lie is told to code generators by one macro, which writes it into the agreement of object files.
#[test]
fn offsets_are_part_of_the_agreement() {
    let word = ["offset", "_of!("].concat();
    for folder in ["runtime/src/", "crates/native/src/"] {
        for (name, text) in sources().into_iter().filter(|(name, _)| name.starts_with(folder)) {
            let library = text.split("#[cfg(test)]").next().unwrap_or_default();
            // How far the rows of one call have come is known to nobody else.
            let known = ["runtime/src/layout.rs", "crates/native/src/translate/rows.rs"].contains(&name.as_str());
            assert!(known || !code(library).any(|line| line.contains(&word)), "{name}: use `layout!`");
        }
    }
}

#[test]
fn lints_are_expected_with_reasons_and_not_allowed() {
    let (attribute, inner) = (["#[", "allow("].concat(), ["#![", "allow("].concat());
    for (name, text) in sources() {
        let allowed = code(&text).any(|line| line.contains(&attribute) || line.contains(&inner));
        assert!(!allowed, "{name} allows a lint");
    }
}

/// A crate that begins to have `unsafe` code, or to rely on another invariant, is a decision: the page on safety has a row for each crate.
#[test]
fn unsafe_is_in_crates_that_may_rely_on_its_invariants() {
    let word = ["un", "safe"].concat();
    let marker = ["// SAFETY", ": "].concat();
    let stated = invariants();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let holds = |line: &str| line.split(|c| !is_part(c)).any(|found| found == word);
    let of_library = |name: &str| (is_library(name) && !name.contains("/tests/")) || name.starts_with("docs/");
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in sources().into_iter().filter(|(name, text)| of_library(name) && code(text).any(holds)) {
        let folder = file.split("/src/").next().unwrap_or(&file).to_owned();
        let comments = text.lines().filter_map(|line| line.split_once(&marker)).map(|(_, comment)| comment);
        let words = comments.flat_map(|comment| comment.split(|c: char| !c.is_ascii_uppercase() && c != '-'));
        found.entry(folder).or_default().extend(words.filter(|word| stated.contains(*word)).map(ToOwned::to_owned));
    }
    let page = read("docs/safety.md");
    let (_, section) = page.split_once("## Crates").expect("a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let row = |line: &str| {
        let (folder, named) = line.strip_prefix("| `")?.split_once("` | ")?;
        let named = named.split(['|', ',']).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        Some((folder.to_owned(), named.collect::<BTreeSet<String>>()))
    };
    let listed: BTreeMap<String, BTreeSet<String>> = section.lines().filter_map(row).collect();
    for (folder, named) in &found {
        assert_eq!(Some(named), listed.get(folder), "{folder}");
    }
    assert_eq!(found.len(), listed.len(), "{:?}", listed.keys());
}

/// The names of the invariants that the page on safety states.
fn invariants() -> BTreeSet<String> {
    let page = read("docs/safety.md");
    let name = |line: &str| Some(line.strip_prefix("**")?.split_once(".**")?.0.to_owned());
    let stated: BTreeSet<String> = page.lines().filter_map(name).collect();
    assert!(stated.contains("FRAME-SLOT") && stated.len() >= 5, "{stated:?}");
    stated
}

#[test]
fn safety_comments_name_a_stated_invariant() {
    let stated = invariants();
    let marker = ["// SAFETY", ": "].concat();
    let mut unused = stated.clone();
    for (file, text) in sources() {
        for comment in text.lines().filter_map(|line| line.split_once(&marker)).map(|(_, comment)| comment) {
            let named = comment.split([':', ',', ';', '.', ' ']).next().unwrap_or_default();
            assert!(!is_library(&file) || stated.contains(named), "{file}: {comment}");
            unused.retain(|name| !comment.contains(name.as_str()));
        }
    }
    assert!(unused.is_empty(), "nobody relies on {unused:?}");
}

/// Whoever calls a function that is `unsafe`, or implements a trait that is, finds the invariant above the declaration, at
/// most four lines of attributes or of the type away.
#[test]
fn unsafe_declarations_name_a_stated_invariant() {
    let stated = invariants();
    let word = ["un", "safe "].concat();
    let declares = |line: &str| {
        let kinds = ["fn", "extern", "impl", "trait"];
        line.match_indices(&word).any(|(at, _)| kinds.iter().any(|kind| line[at + word.len()..].starts_with(kind)))
    };
    for (file, text) in sources().into_iter().filter(|(file, _)| is_library(file)) {
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        let is_comment = |line: &&&str| line.starts_with("//");
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with("//") && declares(line)) {
            let above = lines[..at].iter().rev();
            let comment_at = above.clone().take(5).position(|line| is_comment(&line)).unwrap_or(0);
            let mut comment = above.skip(comment_at).take_while(is_comment);
            assert!(comment.any(|line| stated.iter().any(|name| line.contains(name))), "{file}:{}: {line}", at + 1);
        }
    }
}

/// What is multiplied or added where lengths come from outside is checked, and the page on safety says where that is.
#[test]
fn modules_that_take_lengths_are_the_documented_ones() {
    let attribute = ["#![deny(clippy::", "arithmetic_side_effects)]"].concat();
    let found: BTreeSet<String> = sources()
        .into_iter()
        .filter(|(_, text)| text.lines().any(|line| line == attribute))
        .map(|(name, _)| name)
        .collect();
    let page = read("docs/safety.md");
    let (_, section) = page.split_once("## Lengths and texts from outside").expect("a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let listed = section.lines().filter_map(|line| Some(line.strip_prefix("* `")?.split_once('`')?.0.to_owned()));
    assert_eq!(found, listed.collect::<BTreeSet<String>>());
    // Each test that the table names is one.
    let tests: String = sources().into_iter().map(|(_, text)| text).collect();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    for row in rows {
        let last = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let named: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{row}");
        for name in named {
            assert!(tests.contains(&format!("fn {name}(")), "{name}");
        }
    }
}

/// The test of the package compares all of the stub; this one needs no Python.
#[test]
fn the_stub_for_python_names_every_operator() {
    let stub = read("crates/python/python/cembra/operators.pyi");
    let (mut class, mut methods) = ("", BTreeSet::new());
    for line in stub.lines() {
        class = line.strip_prefix("class ").map_or(class, |name| name.trim_end_matches(':'));
        let method = line.strip_prefix("    def ").and_then(|line| line.split_once('('));
        methods.extend(method.map(|(name, _)| (class.to_owned(), name)));
    }
    // `tensor.block` is the method `block` of `_TensorOperators`.
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    let lacks = |name: &&str| {
        let (family, own) = name.rsplit_once('.').unwrap_or(("core", name));
        let class = family.split('.').map(capital).collect::<String>();
        !methods.contains(&(format!("_{class}Operators"), own))
    };
    let all = Registry::standard().iter().map(|(_, def)| def.name).filter(|name| !name.contains("._"));
    let missing: Vec<&str> = all.filter(lacks).collect();
    assert_eq!(missing, [""; 0], "run crates/python/scripts/stubs.py");
}

#[test]
fn no_merge_is_unfinished() {
    let listed = Command::new("git").args(["ls-files"]).current_dir(root()).output();
    // What is not a checkout, such as an unpacked archive, was never merged.
    let Ok(listed) = listed else { return };
    let (ours, theirs) = (["<<<<", "<<< "].concat(), [">>>>", ">>> "].concat());
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        let text = std::fs::read(root().join(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.lines().any(|line| line.starts_with(&ours) || line.starts_with(&theirs)), "{name}");
    }
}
