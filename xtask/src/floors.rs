//! The floors of the core: a module uses its own floor and those below it, never one above.

use std::path::Path;

use crate::sources::{read, rust_files};

/// The floors from the ground up, with their modules. Of two entries that fit, the longer counts.
const FLOORS: &[(&str, &[&str])] = &[
    (
        "words",
        &["text", "id", "linger", "time", "value", "value_serde", "json", "status", "failure"],
    ),
    ("policies", &["retry", "timeout", "blake2b", "bucket", "ownership"]),
    ("record", &["transition", "snapshot", "machine", "artifacts"]),
    ("ports", &["task", "store", "executor"]),
    ("deciding", &["scheduler"]),
    (
        "doing",
        &[
            "memory_store",
            "executor::thread",
            "executor::inline",
            "control",
            "recovery",
            "doctor",
            "controller",
        ],
    ),
];

/// What a module must not know although it lies below: the core's invariants of absence. The
/// scheduler speaks the executor's words (signals and reports), but never holds an executor.
const UNKNOWN_TO: &[(&str, &[&str])] = &[
    (
        "scheduler",
        &["store", "executor::Executor", "executor::Carrier", "executor::Launch", "time::Clock"],
    ),
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
    let hidden = UNKNOWN_TO.iter().filter(|(who, _)| entry_of(module) == Some(who));
    let hidden: Vec<&str> = hidden.flat_map(|(_, what)| what.iter().copied()).collect();
    let mut findings = Vec::new();
    for used in uses(text) {
        let why = match floor_of(&used) {
            None => "is no module with a floor; name the module",
            Some(floor) if floor > own => "lies above it",
            Some(_) if hidden.iter().any(|path| is_within(&used, path)) => "it must not know",
            Some(_) => continue,
        };
        findings.push(format!("uses `crate::{used}`, which {why}"));
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
    entries.filter(|entry| is_within(path, entry)).max_by_key(|entry| entry.len())
}

/// `executor::thread` is within `executor`, `executors` is not.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The paths behind `crate::` in the code, without comments and without the tests at the end.
fn uses(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: String = code.lines().filter_map(|line| line.split("//").next()).collect();
    let mut paths = Vec::new();
    for rest in code.split("crate::").skip(1) {
        expand("", rest, &mut paths);
    }
    paths
}

/// Adds the paths that begin a text: `a::{b, c::D}` is `a::b` and `a::c::D`.
fn expand(prefix: &str, text: &str, paths: &mut Vec<String>) {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    let (path, rest) = text.split_at(text.find(|c| !is_path(c)).unwrap_or(text.len()));
    let path = format!("{prefix}{path}");
    let Some(group) = rest.strip_prefix('{').filter(|_| path.is_empty() || path.ends_with("::"))
    else {
        paths.push(path.trim_end_matches(':').to_owned());
        return;
    };
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in group.char_indices() {
        let ends_item = matches!(c, ',' | '}') && depth == 0;
        let item = group.get(start..at).unwrap_or_default().trim();
        if ends_item && !item.is_empty() {
            expand(&path, item, paths);
        }
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
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
    fn groups_are_expanded() {
        let text = "use crate::a::{B, c::{D, E}, F};\nuse crate::{\n    g::H,\n    i,\n};\nlet x = crate::j::k(1);";
        assert_eq!(uses(text), ["a::B", "a::c::D", "a::c::E", "a::F", "g::H", "i", "j::k"]);
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
            ("scheduler", "use crate::executor::{Signal, Launch};", "must not know"),
            ("id", "use crate::{text::Text, store::{Now, Entry}};", "above"),
            ("task", "use crate::TaskId;", "name the module"),
            ("novelty", "", "no floor"),
        ] {
            let found = check_module(module, text);
            assert!(
                !found.is_empty() && found.iter().all(|why| why.contains(word)),
                "{module} {text}: {found:?}"
            );
        }
    }
}
