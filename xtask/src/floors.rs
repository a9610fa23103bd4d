//! The floors of the core: a module uses its own floor and those below it, never one above.

use std::path::Path;

use crate::sources::{read, rust_files};

/// The floors from the ground up, with their modules. Of two entries that fit, the longer counts.
const FLOORS: &[(&str, &[&str])] = &[
    ("words", &["text", "id", "time", "value", "value_serde", "status", "failure"]),
    ("policies", &["retry", "timeout", "blake2b", "bucket", "ownership"]),
    ("record", &["transition", "snapshot", "machine", "artifacts"]),
    ("ports", &["task", "store", "executor"]),
    ("deciding", &["scheduler"]),
    ("doing", &["memory_store", "executor::thread", "executor::inline", "controller"]),
];

/// What a module must not know although it lies below: the core's invariants of absence.
const UNKNOWN_TO: &[(&str, &[&str])] = &[
    ("scheduler", &["store", "executor"]),
    ("store", &["retry", "timeout", "ownership"]),
    ("executor", &["status"]),
];

/// The uses that go up, and modules that have no floor.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let source = root.join("crates/core/src");
    let mut findings = Vec::new();
    for file in rust_files(&source)? {
        let relative = file.strip_prefix(&source).unwrap_or(&file);
        let module = module_of(relative);
        let is_test = module.split("::").any(|part| part == "tests");
        if module != "lib" && !is_test {
            let found = check_module(&module, &read(&file)?);
            findings.extend(
                found.iter().map(|why| format!("crates/core/src/{}: {why}", relative.display())),
            );
        }
    }
    Ok(findings)
}

fn check_module(module: &str, text: &str) -> Vec<String> {
    let Some(own) = floor_of(module) else {
        return vec![format!("`{module}` is on no floor; give it one in xtask/src/floors.rs")];
    };
    let mut findings = Vec::new();
    for used in uses(text) {
        let hidden = UNKNOWN_TO.iter().find(|(who, _)| entry_of(module) == Some(who));
        match (floor_of(&used), entry_of(&used)) {
            (Some(floor), _) if floor > own => {
                findings.push(format!("uses `crate::{used}`, which lies above it"));
            }
            (Some(_), Some(entry)) if hidden.is_some_and(|(_, what)| what.contains(&entry)) => {
                findings.push(format!("uses `crate::{used}`, which it must not know"));
            }
            (Some(_), _) => {}
            (None, _) => findings.push(format!(
                "uses `crate::{used}`, which is no module with a floor; name the module"
            )),
        }
    }
    findings
}

/// `task/context.rs` → `task::context`, `task/mod.rs` → `task`.
fn module_of(file: &Path) -> String {
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
    let module = parts.join("::");
    let module = module.strip_suffix(".rs").unwrap_or(&module);
    module.strip_suffix("::mod").unwrap_or(module).to_owned()
}

fn floor_of(path: &str) -> Option<usize> {
    let entry = entry_of(path)?;
    FLOORS.iter().position(|(_, modules)| modules.contains(&entry))
}

/// The longest entry of the table that the path is or lies in.
fn entry_of(path: &str) -> Option<&'static str> {
    let entries = FLOORS.iter().flat_map(|(_, modules)| modules.iter().copied());
    entries
        .filter(|entry| {
            path.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        })
        .max_by_key(|entry| entry.len())
}

/// The paths behind `crate::` in the code, without comments and without the tests at the end.
fn uses(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut paths = Vec::new();
    for line in code.lines() {
        let line = line.split("//").next().unwrap_or_default();
        for rest in line.split("crate::").skip(1) {
            let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
            let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
            paths.push(rest.get(..end).unwrap_or_default().trim_end_matches(':').to_owned());
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_modules() {
        for (file, module) in
            [("id.rs", "id"), ("task/mod.rs", "task"), ("task/context.rs", "task::context")]
        {
            assert_eq!(module_of(Path::new(file)), module);
        }
    }

    #[test]
    fn uses_of_lower_floors_and_the_own_are_allowed() {
        let text =
            "use crate::text::Text;\nuse crate::executor::Launch;\n/// [`crate::controller`]\n";
        assert_eq!(check_module("task::context", text), Vec::<String>::new());
        assert_eq!(check_module("controller", text), Vec::<String>::new());
        assert_eq!(
            check_module("executor::thread", "use crate::task::Control;"),
            Vec::<String>::new()
        );
        let tested =
            "use crate::id::TaskId;\n#[cfg(test)]\nmod tests {\n use crate::controller::X;\n}\n";
        assert_eq!(check_module("snapshot", tested), Vec::<String>::new());
    }

    #[test]
    fn uses_that_go_up_or_nowhere_are_found() {
        for (module, text, word) in [
            ("id", "use crate::snapshot::TaskSnapshot;", "above"),
            ("task", "use crate::executor::thread::Pool;", "above"),
            ("scheduler::admission", "use crate::store::Now;", "must not know"),
            ("executor", "fn f(s: crate::status::Status) {}", "must not know"),
            ("task", "use crate::{id::TaskId, text::Text};", "name the module"),
            ("task", "use crate::TaskId;", "name the module"),
            ("novelty", "", "no floor"),
        ] {
            let found = check_module(module, text);
            assert!(found.len() == 1 && found[0].contains(word), "{module} {text}: {found:?}");
        }
    }
}
