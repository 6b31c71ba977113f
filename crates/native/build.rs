//! Hashes the sources on which generated machine code depends, for the environment variable `CEMBRA_CODE_SOURCES`. The
//! hash is part of the keys of the code cache, so that edited sources invalidate cached code without a new version
//! number. If the other crates' sources are not beside this crate, as in a published package, only this crate's sources
//! are hashed, and the version in the key tells releases apart.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 7] =
    ["src", "../value/src", "../tape/src", "../ops/src", "../plan/src", "../record/src", "../../runtime/src"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = BTreeSet::new();
    for folder in FOLDERS.map(Path::new).into_iter().filter(|folder| folder.is_dir()) {
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(folder, &mut files)?;
    }
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.to_string_lossy().as_bytes());
        hasher.write(&fs::read(&file)?);
    }
    println!("cargo::rustc-env=CEMBRA_CODE_SOURCES={:016x}", hasher.finish());
    Ok(())
}

fn collect(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}
