//! The environment of a command: inherited, then ours, then its own (spec 14).

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use chongming_core::Launch;
use rustix::process::RawPid;

use crate::command::{Command, RESERVED_VARIABLES, SERVE, SUPERVISOR, TASK_PIPE};
use crate::error::GUARDIAN;
use crate::mailbox::ChildId;
use crate::procfs::folders_of;
use crate::protocol::{CHILD_IN, CHILD_OUT};

const TASK_ID: &str = "CHONGMING_TASK_ID";
const TASK_NAME: &str = "CHONGMING_TASK_NAME";
const TASK_ATTEMPT: &str = "CHONGMING_TASK_ATTEMPT";
const TASK_IN: &str = "CHONGMING_TASK_IN";
const TASK_OUT: &str = "CHONGMING_TASK_OUT";
pub(crate) const ARTIFACT_DIR: &str = "CHONGMING_ARTIFACT_DIR";

/// Speak of the supervisor's own task, if it is one, and so never of its children's.
const NOT_INHERITED: [&str; 8] =
    [SUPERVISOR, GUARDIAN, SERVE, TASK_ID, TASK_NAME, TASK_ATTEMPT, TASK_PIPE, ARTIFACT_DIR];

/// Stands before the task's name in the arguments of such a program.
pub(crate) const SERVE_ARGUMENT: &str = "--chongming-serve";

/// A child with a larger environment is not possible on Linux by default.
const MAX_ENVIRONMENT: u64 = 8 * 1024 * 1024;

/// More supervisors than this, each started by a task of the one before, are taken for an endless chain.
const MAX_NESTING: usize = 32;

/// What every command of one executor inherits: this program's environment when the executor was made.
#[derive(Debug)]
pub(crate) struct Inherited {
    variables: Vec<(OsString, CString)>,
    marker: String,
    token: String,
}

/// What marks the processes of one attempt.
pub(crate) fn attempt_mark(token: &str, id: ChildId) -> String {
    format!("{token}.{id}")
}

impl Inherited {
    /// Takes the environment of now. `token` names the executor.
    pub(crate) fn capture(token: &str) -> Self {
        Self::from_variables(std::env::vars_os(), token)
    }

    fn from_variables(variables: impl Iterator<Item = (OsString, OsString)>, token: &str) -> Self {
        let mut marker = token.to_owned();
        let mut kept = Vec::new();
        for (name, value) in variables {
            if name == SUPERVISOR {
                marker = format!("{},{token}", value.to_string_lossy());
            }
            if NOT_INHERITED.iter().any(|own| name == *own) {
                continue;
            }
            if let Ok(entry) = entry(name.as_bytes(), value.as_bytes()) {
                kept.push((name, entry));
            }
        }
        Self { variables: kept, marker, token: token.to_owned() }
    }

    /// The environment of a program that is asked for its tasks over this pipe, marked by this token.
    pub(crate) fn for_question(pipe: u64, token: &str) -> Vec<CString> {
        let Self { variables, marker, .. } = Self::capture(token);
        let marks = [(SERVE, pipe.to_string()), (SUPERVISOR, marker)];
        let marks = marks.iter().flat_map(|(name, value)| entry(name.as_bytes(), value.as_bytes()));
        variables.into_iter().map(|(_, entry)| entry).chain(marks).collect()
    }

    /// Is this program the last of an endless chain of supervisors?
    pub(crate) fn is_nested_too_deep(&self) -> bool {
        self.marker.split(',').count() > 2 * MAX_NESTING
    }

    /// The environment of one attempt, which gets this pipe as [`CHILD_OUT`].
    ///
    /// # Errors
    /// Names the variable that cannot be passed on.
    pub(crate) fn for_attempt(
        &self,
        id: ChildId,
        launch: &Launch,
        command: &Command,
        pipe: u64,
    ) -> Result<Variables<'_>, String> {
        let marker = format!("{},{}", self.marker, attempt_mark(&self.token, id));
        let attempt = launch.attempt.to_string();
        let (task_in, task_out) = (CHILD_IN.to_string(), CHILD_OUT.to_string());
        let mut own: Vec<(&str, CString)> = Vec::with_capacity(7 + command.env.len());
        let pipe = pipe.to_string();
        let artifacts = launch.files.as_ref().map(|files| files.artifact_dir.as_os_str());
        let ours = [
            (SUPERVISOR, Some(marker.as_bytes())),
            (TASK_ID, Some(launch.task_id.as_str().as_bytes())),
            (TASK_NAME, Some(launch.name.as_bytes())),
            (TASK_ATTEMPT, Some(attempt.as_bytes())),
            (ARTIFACT_DIR, artifacts.map(OsStr::as_bytes)),
            (TASK_IN, Some(task_in.as_bytes())),
            (TASK_OUT, Some(task_out.as_bytes())),
            (TASK_PIPE, Some(pipe.as_bytes())),
            (SERVE, command.serves.as_ref().map(|_| pipe.as_bytes())),
        ];
        for (name, value) in ours {
            if let Some(value) = value {
                let entry = entry(name.as_bytes(), value)
                    .map_err(|_| format!("{name} would contain a NUL character"))?;
                own.push((name, entry));
            }
        }
        for (name, value) in &command.env {
            if name.is_empty() || name.contains('=') || name.contains('\0') {
                return Err(format!("{name:?} cannot be the name of an environment variable"));
            }
            if RESERVED_VARIABLES.contains(&name.as_str()) {
                return Err(format!("the environment variable {name} is reserved"));
            }
            let entry = entry(name.as_bytes(), value.as_bytes()).map_err(|_| {
                format!("the value of the environment variable {name} contains a NUL character")
            })?;
            own.retain(|(other, _)| other != name);
            own.push((name, entry));
        }
        let inherited = self
            .variables
            .iter()
            .filter(|(name, _)| own.iter().all(|(other, _)| name != other))
            .map(|(_, entry)| entry.as_c_str())
            .collect();
        Ok(Variables { own: own.into_iter().map(|(_, entry)| entry).collect(), inherited })
    }
}

/// The environment of one attempt, ready to be passed on.
pub(crate) struct Variables<'a> {
    own: Vec<CString>,
    inherited: Vec<&'a CStr>,
}

impl Variables<'_> {
    /// All of them, as `NAME=value`.
    pub(crate) fn entries(&self) -> Vec<&CStr> {
        self.own.iter().map(CString::as_c_str).chain(self.inherited.iter().copied()).collect()
    }

    /// The value of one of them.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.own
            .iter()
            .map(CString::as_c_str)
            .chain(self.inherited.iter().copied())
            .find_map(|entry| entry.to_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .map(OsStr::from_bytes)
    }
}

/// Does this environment (entries that end in NUL) carry the marker of the executor `token`?
pub(crate) fn is_marked(environment: &[u8], token: &str) -> bool {
    environment.split(|byte| *byte == 0).any(|entry| {
        entry
            .strip_prefix(SUPERVISOR.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .is_some_and(|list| list.split(|b| *b == b',').any(|one| one == token.as_bytes()))
    })
}

/// Is this the environment of a guardian?
pub(crate) fn is_guardian(environment: &[u8]) -> bool {
    let value = |entry: &[u8]| entry.strip_prefix(GUARDIAN.as_bytes())?.first().copied();
    environment.split(|byte| *byte == 0).any(|entry| value(entry) == Some(b'='))
}

/// The environment that a process was started with; `None` when it is gone or not ours to read.
pub(crate) fn environment_of(pid: RawPid) -> Option<Vec<u8>> {
    use std::io::Read;
    let read = |folder: String| {
        let file = fs::File::open(format!("{folder}/environ")).ok()?;
        let mut environment = Vec::new();
        file.take(MAX_ENVIRONMENT).read_to_end(&mut environment).ok()?;
        Some(environment)
    };
    folders_of(pid).into_iter().filter_map(read).max_by_key(Vec::len)
}

fn entry(name: &[u8], value: &[u8]) -> Result<CString, std::ffi::NulError> {
    CString::new(OsString::from_vec([name, b"=", value].concat()).into_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chongming_core::{AttemptSink, Report, Target, TaskId, Value};
    use std::sync::Arc;

    struct Nobody;
    impl AttemptSink for Nobody {
        fn report(&self, _: Report) {}

        fn may_begin(&self) -> bool {
            true
        }
    }

    fn launch() -> Launch {
        Launch {
            task_id: TaskId::new("t1").unwrap(),
            name: "job".into(),
            attempt: 2,
            target: Target::External(Arc::new(())),
            args: Value::Null,
            upstream: Arc::default(),
            files: None,
            sink: Arc::new(Nobody),
        }
    }

    fn of(inherited: &[(&str, &str)], env: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let inherited = inherited.iter().map(|(name, value)| (name.into(), value.into()));
        let inherited = Inherited::from_variables(inherited, "tok");
        let mut command = Command::new(["x"]);
        command.env = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let variables = inherited.for_attempt(7, &launch(), &command, 5)?;
        let mut entries: Vec<String> =
            variables.entries().iter().map(|e| e.to_str().unwrap().to_owned()).collect();
        entries.sort();
        Ok(entries)
    }

    #[test]
    fn inherited_then_ours_then_its_own() {
        let inherited = [
            ("A", "1"),
            ("B", "2"),
            ("CHONGMING_TASK_ID", "outer"),
            ("CHONGMING_TASK_IN", "7"),
            ("CHONGMING_ARTIFACT_DIR", "/outer"),
        ];
        assert_eq!(
            of(&inherited, &[("B", "3"), ("B", "4"), ("CHONGMING_TASK_NAME", "mine")]).unwrap(),
            [
                "A=1",
                "B=4",
                "CHONGMING_SUPERVISOR=tok,tok.7",
                "CHONGMING_TASK_ATTEMPT=2",
                "CHONGMING_TASK_ID=t1",
                "CHONGMING_TASK_IN=3",
                "CHONGMING_TASK_NAME=mine",
                "CHONGMING_TASK_OUT=4",
                "CHONGMING_TASK_PIPE=5",
            ]
        );
    }

    #[test]
    fn what_cannot_be_passed_on_is_named() {
        for (name, value, problem) in [
            ("A=B", "", "\"A=B\" cannot be the name"),
            ("", "", "\"\" cannot be the name"),
            ("A", "x\0y", "variable A contains a NUL"),
            ("CHONGMING_SUPERVISOR", "x", "reserved"),
            ("CHONGMING_GUARDIAN", "x", "reserved"),
            ("CHONGMING_SERVE", "x", "reserved"),
            ("CHONGMING_TASK_PIPE", "x", "reserved"),
        ] {
            let message = of(&[], &[(name, value)]).unwrap_err();
            assert!(message.contains(problem), "{message}");
        }
    }

    #[test]
    fn a_nested_executor_adds_its_mark() {
        let entries = of(&[("CHONGMING_SUPERVISOR", "outer")], &[]).unwrap();
        assert!(entries.contains(&"CHONGMING_SUPERVISOR=outer,tok,tok.7".to_owned()));
        let environment = b"A=1\0CHONGMING_SUPERVISOR=outer,tok\0";
        assert!(is_marked(environment, "outer") && is_marked(environment, "tok"));
        assert!(!is_guardian(environment) && !is_guardian(b"XCHONGMING_GUARDIAN=tok"));
        assert!(is_guardian(b"A=1\0CHONGMING_GUARDIAN=tok\0"));
        assert!(!is_marked(environment, "ou") && !is_marked(b"XCHONGMING_SUPERVISOR=tok", "tok"));
    }
}
