//! The body of a command: marks its begin and its end, and in between does what its kind says.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crate::marks::AtWork;

/// The folder of the run.
pub(crate) const FOLDER: &str = "TORTURE_FOLDER";
/// The number of the supervisor.
pub(crate) const SUPERVISOR: &str = "TORTURE_SUPERVISOR";

/// Kinds of bodies, all of them tasks of the manifest, too.
pub(crate) const KINDS: &[&str] = &["quick", "slow", "flaky", "family", "deaf"];

/// The manifest in which `program` plays the bodies.
pub(crate) fn manifest(program: &str) -> String {
    let mut text = "max_parallel = 4\n".to_owned();
    for kind in KINDS {
        let plain = format!("[\"{program}\", \"body\", \"{kind}\", \"{{ms}}\"]");
        let command = match *kind {
            // What ignores SIGTERM can only be killed.
            "deaf" => format!(
                "[\"sh\", \"-c\", \"trap '' TERM; exec \\\"$0\\\" body deaf \\\"$1\\\"\", \"{program}\", \"{{ms}}\"]"
            ),
            _ => plain,
        };
        text.push_str(&format!(
            "[tasks.{kind}]\ncommand = {command}\nparams = {{ ms = {{ default = \"20\" }} }}\n\
             retry = {{ max_attempts = 4, backoff = {{ base = \"300ms\" }} }}\n"
        ));
    }
    text.push_str(
        "[pipelines.chain]\nnodes = [\n  { id = \"a\", task = \"quick\" },\n  \
         { id = \"b\", task = \"slow\", args = { ms = \"300\" }, depends_on = [\"a\"] },\n  \
         { id = \"c\", task = \"flaky\", depends_on = [\"a\"] },\n  \
         { id = \"d\", task = \"family\", depends_on = [\"b\", \"c\"], join = \"all_settled\" },\n]\n",
    );
    text
}

/// Plays it.
pub(crate) fn run(kind: &str, ms: &str) -> Result<ExitCode, String> {
    let variable = |name| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let number = |text: &str| text.parse::<u32>().map_err(|error| format!("{text:?}: {error}"));
    let attempt = number(&variable("CHONGMING_TASK_ATTEMPT")?)?;
    let at_work = AtWork::begin(
        &PathBuf::from(variable(FOLDER)?),
        &variable("CHONGMING_TASK_ID")?,
        attempt,
        number(&variable(SUPERVISOR)?)?,
        None,
    )
    .map_err(|error| format!("cannot begin: {error}"))?;
    if kind == "family" {
        // A grandchild that outlives its parent, unless somebody cares; it holds the lock, too.
        let lock = at_work.lock.try_clone().map_err(|error| error.to_string())?;
        let mut grandchild = Command::new("sleep");
        grandchild.arg("600").stdin(lock).stdout(Stdio::null()).stderr(Stdio::null());
        grandchild.spawn().map_err(|error| format!("cannot start sleep: {error}"))?;
    }
    println!("attempt {attempt}");
    thread::sleep(Duration::from_millis(number(ms)?.into()));
    let fails = kind == "flaky" && attempt % 3 != 0;
    at_work.end(!fails).map_err(|error| error.to_string())?;
    Ok(if fails { ExitCode::from(7) } else { ExitCode::SUCCESS })
}
