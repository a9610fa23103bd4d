//! Every source file says in its first line what it is about.

use std::fs;
use std::path::{Path, PathBuf};

/// The files that do not.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for file in
        rust_files(&root.join("crates"))?.into_iter().chain(rust_files(&root.join("xtask"))?)
    {
        if !is_exempt(&file) && !read(&file)?.starts_with("//!") {
            let file = file.strip_prefix(root).unwrap_or(&file);
            findings.push(format!("{}: the first line must be a `//!` comment", file.display()));
        }
    }
    Ok(findings)
}

/// Tests and lists of modules may go without.
fn is_exempt(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    name == "tests.rs" || name == "mod.rs" || file.iter().any(|part| part == "tests")
}

/// All Rust files below a folder, in order.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let mut files = Vec::new();
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(unreadable)?.collect();
    let mut paths: Vec<PathBuf> = entries.map_err(unreadable)?.iter().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files.append(&mut rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// The text of a file.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_and_lists_of_modules_are_exempt() {
        for (file, exempt) in [
            ("crates/core/src/id.rs", false),
            ("crates/core/src/task/mod.rs", true),
            ("crates/cli/tests/cli/usage.rs", true),
            ("crates/cli/src/manifest/tests.rs", true),
            ("xtask/src/main.rs", false),
        ] {
            assert_eq!(is_exempt(Path::new(file)), exempt, "{file}");
        }
    }
}
