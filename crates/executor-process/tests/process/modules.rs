//! Executables that serve their tasks by name.

use std::path::Path;
use std::time::Duration;

use chongming_core::{AttemptEnd, Value};
use chongming_executor_process::Command;
use chongming_executor_process::module::{LIST_LIMIT, ModuleError, list};

use crate::support::{Rig, TEST_PROGRAM, tasks};

#[test]
fn a_module_lists_its_tasks_by_name() {
    let listed = list(Path::new(TEST_PROGRAM), LIST_LIMIT).unwrap();
    let mut expected = tasks::all();
    expected.sort_by(|a, b| a.name().cmp(b.name()));
    assert_eq!(listed.len(), expected.len());
    for (listed, task) in listed.iter().zip(&expected) {
        assert_eq!((&*listed.name, &listed.defaults), (task.name(), task.defaults()));
        assert_eq!(listed.params, task.params());
        let definition = listed.definition(Command::serving(TEST_PROGRAM, &*listed.name));
        assert_eq!((definition.name(), definition.params()), (task.name(), task.params()));
        assert_eq!(definition.defaults(), task.defaults());
    }
}

#[test]
fn a_modules_task_runs_in_a_child_of_it() {
    let rig = Rig::new();
    let attempt = rig.launch(Command::serving(TEST_PROGRAM, "echo"));
    assert_eq!(attempt.ended(), AttemptEnd::Completed(Value::Null));
}

#[test]
fn what_is_no_module_is_told_what_it_lacks() {
    for program in ["/bin/true", "/bin/false", "/bin/cat", "/bin/sh"] {
        let error = list(Path::new(program), LIST_LIMIT).unwrap_err();
        assert!(matches!(error, ModuleError::NoModule { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(program) && message.contains("init_with"), "{message}");
    }
    for (program, problem) in [
        ("/no/such/module", "does not exist"),
        ("/etc/passwd", "not executable"),
        ("/etc", "is a directory"),
    ] {
        let error = list(Path::new(program), LIST_LIMIT).unwrap_err();
        assert!(matches!(error, ModuleError::Start { .. }), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
}

/// A script that runs the test program in another part.
fn part(dir: &Path, part: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let file = dir.join(part);
    let script = format!("#!/bin/sh\nTEST_MODULE={part} exec {TEST_PROGRAM} \"$@\"\n");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

#[test]
fn a_module_that_hangs_or_floods_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let error = list(&part(dir.path(), "hangs"), Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error, ModuleError::TimedOut { .. }), "{error}");
    let error = list(&part(dir.path(), "floods"), LIST_LIMIT).unwrap_err();
    assert!(matches!(error, ModuleError::Answer { .. }), "{error}");
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[test]
fn a_script_around_a_module_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let listed = list(&part(dir.path(), "plain"), LIST_LIMIT).unwrap();
    assert_eq!(listed.len(), tasks::all().len());
}
