//! Which file a command runs, and why it could not be: looked into only when it could not, since a launch
//! that works needs no look.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Searched when no `PATH` is set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Where a command runs, as an absolute path.
///
/// # Errors
/// There is no way to tell.
pub(crate) fn absolute(cwd: &Path) -> Result<PathBuf, String> {
    std::path::absolute(cwd)
        .map_err(|error| format!("working directory {cwd:?} cannot be used: {error}"))
}

/// Can a command run in this folder?
fn check_directory(dir: &Path) -> Result<(), String> {
    match fs::metadata(dir) {
        Ok(found) if !found.is_dir() => {
            Err(format!("working directory {dir:?} is not a directory"))
        }
        Ok(_) if access(dir, Access::EXEC_OK).is_err() => {
            Err(format!("working directory {dir:?} cannot be entered: permission denied"))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("working directory {dir:?} does not exist"))
        }
        Err(error) => Err(format!("working directory {dir:?} cannot be used: {error}")),
    }
}

/// The program's file; one with a slash may not be there. `cwd` is absolute; `path` is the child's `PATH`.
///
/// # Errors
/// Says what is wrong with which path.
pub(crate) fn find(program: &str, cwd: &Path, path: Option<&OsStr>) -> Result<PathBuf, String> {
    if program.contains('/') {
        return Ok(cwd.join(program));
    }
    let path = path.map_or_else(|| OsString::from(DEFAULT_PATH), OsStr::to_owned);
    let mut not_executable = None;
    for dir in path.as_bytes().split(|byte| *byte == b':') {
        let file = cwd.join(OsStr::from_bytes(dir)).join(program);
        match look(&file) {
            Found::Program => return Ok(file),
            Found::NotExecutable => not_executable = not_executable.or(Some(file)),
            Found::Nothing | Found::Directory | Found::Unreadable(_) => {}
        }
    }
    check_directory(cwd)?;
    Err(match not_executable {
        Some(file) => format!("program {program:?} was found at {file:?}, which is not executable"),
        None => format!("program {program:?} was not found on PATH ({})", path.display()),
    })
}

/// Why a program could not be run in a folder, when the system answered with this error.
pub(crate) fn spawn_problem(program: &Path, cwd: &Path, error: Errno) -> String {
    check_directory(cwd)
        .and_then(|()| check_program(program))
        .err()
        .unwrap_or_else(|| other_problem(program, error))
}

/// Can this file be run, as far as one can see?
fn check_program(file: &Path) -> Result<(), String> {
    match look(file) {
        Found::Program => Ok(()),
        Found::Nothing => Err(format!("program {file:?} does not exist")),
        Found::Directory => Err(format!("program {file:?} is a directory")),
        Found::NotExecutable => Err(format!("program {file:?} is not executable")),
        Found::Unreadable(error) => Err(format!("program {file:?} cannot be used: {error}")),
    }
}

fn other_problem(program: &Path, error: Errno) -> String {
    match error {
        Errno::NOENT => {
            format!("program {program:?} cannot be run: its interpreter does not exist")
        }
        Errno::NOEXEC => format!(
            "program {program:?} is in no format that this system can run; a script needs a first line such as #!/bin/sh"
        ),
        Errno::ACCESS => {
            format!(
                "program {program:?} may not be run: it, its interpreter or its file system forbids it"
            )
        }
        Errno::TOOBIG => {
            format!("program {program:?} cannot be run: its arguments and environment are too long")
        }
        Errno::AGAIN => format!(
            "program {program:?} cannot be started: the limit of processes is reached (see ulimit -u)"
        ),
        other => format!("program {program:?} cannot be started: {other}"),
    }
}

enum Found {
    Program,
    Nothing,
    Directory,
    NotExecutable,
    Unreadable(std::io::Error),
}

fn look(file: &Path) -> Found {
    match fs::metadata(file) {
        Ok(found) if found.is_dir() => Found::Directory,
        Ok(_) if access(file, Access::EXEC_OK).is_err() => Found::NotExecutable,
        Ok(_) => Found::Program,
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR) => Found::Nothing,
            _ => Found::Unreadable(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(path: &Path, mode: u32) {
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn each_problem_has_its_own_message() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        file(&at.join("good"), 0o755);
        file(&at.join("plain"), 0o644);
        fs::create_dir(at.join("bin")).unwrap();
        let path = at.join("bin");
        let found = |program: &str| {
            let file = find(program, at, Some(path.as_os_str()))?;
            check_program(&file).map(|()| file)
        };
        assert_eq!(found("./good").unwrap(), at.join("./good"));
        for (program, problem) in [
            ("./none", "does not exist"),
            ("/no/such/program", "\"/no/such/program\" does not exist"),
            ("./good/x", "does not exist"),
            ("./plain", "is not executable"),
            ("./bin", "is a directory"),
            ("good", "was not found on PATH"),
        ] {
            let message = found(program).unwrap_err();
            assert!(message.contains(problem), "{message}");
        }
        let nowhere = spawn_problem(&at.join("good"), &at.join("none"), Errno::NOENT);
        assert!(nowhere.contains("working directory"), "{nowhere}");
        assert!(spawn_problem(&at.join("good"), at, Errno::NOENT).contains("its interpreter"));
        file(&at.join("bin/tool"), 0o644);
        assert!(found("tool").unwrap_err().contains("which is not executable"));
        file(&at.join("bin/tool"), 0o755);
        assert_eq!(found("tool").unwrap(), at.join("bin/tool"));
    }

    #[test]
    fn a_working_directory_must_be_one() {
        let dir = tempfile::tempdir().unwrap();
        file(&dir.path().join("file"), 0o644);
        assert!(absolute(Path::new(".")).unwrap().is_absolute());
        assert!(check_directory(dir.path()).is_ok());
        for (name, problem) in [("none", "does not exist"), ("file", "is not a directory")] {
            let message = check_directory(&dir.path().join(name)).unwrap_err();
            assert!(message.contains(problem) && message.contains(name), "{message}");
        }
    }
}
