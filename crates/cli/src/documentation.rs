//! Holds the handbook against the program: commands, options, exit codes, the keys of all JSON, and those of manifests.

use std::collections::BTreeMap;

use chongming_core::store::{Count, Node, NodeRow};
use chongming_core::{
    DEFAULT_NUM_BUCKETS, IncarnationId, Ownership, ReconcileOutcome, Reconciled, Status, TaskId,
    Transition, Trigger,
};
use clap::{Arg, CommandFactory};
use serde_json::{Value, json};

use crate::args::Cli;
use crate::commands::explain::ExplanationJson;
use crate::commands::logs::LogJson;
use crate::commands::prune::PrunedJson;
use crate::commands::tasks;
use crate::exit_codes;
use crate::manifest::Manifest;
use crate::views::alert::DoctorJson;
use crate::views::alert::tests::one_of_each;
use crate::views::control::Verdict;
use crate::views::counts;
use crate::views::node::NodeJson;
use crate::views::pipeline::{PipelineJson, PipelineNodeJson};
use crate::views::reconciled::ReconciledJson;
use crate::views::samples::{at, full};
use crate::views::task::TaskJson;
use crate::views::transition::TransitionJson;

const PAGE: &str = include_str!("../../../docs/cli.md");
const MANIFEST: &str = include_str!("../../../docs/manifest.md");
const DISTRIBUTED: &str = include_str!("../../../docs/distributed.md");
const PIPELINES: &str = include_str!("../../../docs/pipelines.md");

/// The text under a heading of the page on the command line.
fn section(heading: &str) -> &'static str {
    section_of(PAGE, heading)
}

/// The text under a heading, up to the next of its rank or above.
fn section_of<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let text = &page[start + heading.len() + 2..];
    let rank = heading.split(' ').next().unwrap().len();
    let ends = (2..=rank).filter_map(|rank| text.find(&format!("\n{} ", "#".repeat(rank))));
    &text[..ends.min().unwrap_or(text.len())]
}

/// The first cells of all rows of a section that begin like this.
fn cells(section: &str, start: &str) -> Vec<String> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    cells.filter(|cell| cell.starts_with(start)).map(str::to_owned).collect()
}

/// An option as a row of the page begins: `` `-a`, `--all` ``.
fn row(option: &Arg) -> String {
    let short = option.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let long = option.get_long().unwrap();
    let takes_value = option.get_action().takes_values() && option.get_value_names().is_some();
    let is_switch =
        option.get_value_parser().type_id() == clap::builder::ValueParser::bool().type_id();
    let value = match option.get_value_names() {
        Some([name]) if takes_value && !is_switch => name.as_str(),
        _ => "",
    };
    let is_optional = option.get_num_args().is_some_and(|number| number.min_values() == 0);
    match value {
        "" => format!("{short}`--{long}`"),
        value if is_optional => format!("{short}`--{long}[={value}]`"),
        value => format!("{short}`--{long} {value}`"),
    }
}

#[test]
fn every_command_has_its_section_and_every_option_its_row() {
    let cli = Cli::command();
    let commands: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let sections: Vec<&str> =
        section("## Commands").lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(sections, commands);
    for command in cli.get_subcommands() {
        let text = section(&format!("### {}", command.get_name()));
        let mut rows = cells(text, "`-");
        let own = std::iter::once(command).chain(command.get_subcommands());
        let mut options: Vec<String> = own
            .flat_map(clap::Command::get_arguments)
            .filter(|arg| arg.get_long().is_some() && !arg.is_global_set())
            .map(row)
            .collect();
        rows.sort();
        options.sort();
        assert_eq!(rows, options, "{}", command.get_name());
        let usage = text.trim_start().lines().next().unwrap();
        for arg in
            command.get_arguments().filter(|arg| arg.is_positional() || arg.is_required_set())
        {
            let name = arg.get_value_names().unwrap()[0].as_str();
            assert!(usage.contains(name), "{}: {usage} lacks {name}", command.get_name());
        }
        let forms: Vec<String> = command
            .get_subcommands()
            .map(|form| {
                let words = form.get_arguments().filter(|arg| arg.is_positional());
                let words = words.map(|arg| arg.get_value_names().unwrap()[0].as_str());
                let head = [command.get_name(), form.get_name()];
                format!("`{}`", head.into_iter().chain(words).collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(cells(text, &format!("`{} ", command.get_name())), forms);
    }
}

#[test]
fn every_global_option_has_its_row_and_variable() {
    let rows: Vec<(String, String)> = section("## Global options")
        .lines()
        .filter_map(|line| line.strip_prefix("| `-"))
        .map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            (format!("`-{}", cells[0]), cells[1].to_owned())
        })
        .collect();
    let options: Vec<(String, String)> = Cli::command()
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .map(|arg| (row(arg), format!("`{}`", arg.get_env().unwrap().to_str().unwrap())))
        .collect();
    assert_eq!(rows, options);
}

#[test]
fn every_exit_code_has_its_row() {
    let codes = [exit_codes::DONE, exit_codes::COMMAND_FAILED, exit_codes::NOT_SUCCEEDED];
    let codes: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
    assert_eq!(cells(section("## Exit codes"), "`"), codes);
}

#[test]
fn every_alert_has_its_row() {
    let kinds: Vec<String> =
        one_of_each().iter().map(|alert| format!("`{}`", alert.kind())).collect();
    let mut rows = cells(section("### doctor"), "`");
    rows.retain(|row| !row.starts_with("`-"));
    // The table has them in the order in which they are told.
    assert_eq!(rows, kinds);
    let alerts = section_of(DISTRIBUTED, "## The alerts of doctor");
    let told = alerts.lines().filter_map(|line| line.strip_prefix("### "));
    assert_eq!(told.map(|kind| format!("`{kind}`")).collect::<Vec<_>>(), kinds);
}

/// The keys of a JSON value, at every level; of a list, those of each element.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        Value::Array(list) if list.iter().any(Value::is_object) => list.iter().map(shape).collect(),
        _ => Value::Null,
    }
}

#[test]
fn every_json_has_the_keys_of_the_page() {
    let id = TaskId::new("t").unwrap();
    let task = full("t");
    let transition = Transition {
        task_id: id.clone(),
        version: 5,
        from: Status::Running,
        to: Status::Stopping,
        at: at(0),
        trigger: Trigger::UserStop,
        reason: None,
    };
    let run = PipelineJson {
        pipeline: "p",
        run_id: "r",
        status: "failed",
        nodes: vec![PipelineNodeJson {
            node: "n",
            depends_on: Vec::new(),
            join: "all_settled",
            task: TaskJson::from(&task),
        }],
    };
    let counts = [Count { bucket: Some(7), status: Status::Queued, tasks: 1 }];
    let ownership = Ownership::new(DEFAULT_NUM_BUCKETS, None).unwrap();
    let node = NodeRow {
        node: Node {
            owner: "node-a".into(),
            incarnation: IncarnationId::new("1").unwrap(),
            host: "box".into(),
            pid: 1,
            num_buckets: DEFAULT_NUM_BUCKETS,
            owned_buckets: None,
            artifacts: None,
            started_at: at(0),
        },
        lease_until: at(0),
        alive: true,
    };
    let found = Reconciled {
        outcome: ReconcileOutcome::MarkedLost,
        task_id: id.clone(),
        was: Status::Running,
        detail: String::new(),
    };
    let verdict = Verdict { task_id: id, accepted: true, confirmed: None, result: String::new() };
    let explanation =
        ExplanationJson { task_id: "t", status: "queued", explanation: "", source: "holder" };
    let log = LogJson { task_id: "t", attempt: 1, path: String::new(), output: String::new() };
    let manifest = "[tasks.t]\ncommand = ['x']\nparams = { p = {} }\n";
    let manifest = Manifest::parse("m.toml".as_ref(), manifest).unwrap();
    let written: BTreeMap<&str, Value> = [
        ("tasks", json!([tasks::TaskJson::from(&manifest.tasks[0])])),
        ("pipeline", json!(run)),
        ("status", json!(TaskJson::from(&task))),
        ("history", json!([TransitionJson::from(&transition)])),
        ("logs", json!(log)),
        ("stop", json!([verdict])),
        ("explain", json!(explanation)),
        ("stats", json!(counts::stats(&counts))),
        ("buckets", json!([counts::buckets(&counts, &ownership)[7]])),
        ("nodes", json!([NodeJson::from(&node)])),
        ("doctor", json!(DoctorJson::from(&*one_of_each()))),
        ("reconcile", json!([ReconciledJson::from(&found)])),
        ("prune", json!(PrunedJson { tasks: 0, nodes: 0, dry_run: false })),
    ]
    .into();
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let text = section(&format!("### {name}"));
        let example = text.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
        match (example, written.get(name)) {
            (Some(example), Some(written)) => {
                let example: Value = serde_json::from_str(example).unwrap();
                assert_eq!(shape(&example), shape(written), "{name}");
            }
            (None, None) => {}
            (example, written) => panic!("{name}: {example:?}, {written:?}"),
        }
    }
}

#[test]
fn the_manifests_of_the_pages_are_sound() {
    for page in [MANIFEST, PIPELINES] {
        let text = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let manifest = Manifest::parse("m.toml".as_ref(), text.unwrap()).unwrap();
        assert!(manifest.pipeline("nightly").is_ok());
    }
}

#[test]
fn every_key_of_a_manifest_has_its_row() {
    const UNKNOWN: &str = "zzzzzzzzzzzz = 1";
    for (page, heading, table) in [
        (MANIFEST, "## The file", UNKNOWN.to_owned()),
        (MANIFEST, "## A task", format!("tasks.a.{UNKNOWN}")),
        (MANIFEST, "## A parameter", format!("tasks.a.params.p.{UNKNOWN}")),
        (MANIFEST, "## Retries", format!("tasks.a.retry.{UNKNOWN}")),
        (MANIFEST, "## Back-off", format!("tasks.a.retry.backoff.{UNKNOWN}")),
        (MANIFEST, "## Time-outs", format!("tasks.a.timeout.{UNKNOWN}")),
        (MANIFEST, "## A pipeline", format!("pipelines.p.{UNKNOWN}")),
        (PIPELINES, "## In a manifest", format!("pipelines.p.nodes = [{{ {UNKNOWN} }}]")),
    ] {
        // An unknown key is answered with all that there are.
        let told = Manifest::parse("m.toml".as_ref(), &table).unwrap_err().to_string();
        let (_, keys) = told.split_once("the keys here are ").unwrap();
        let mut keys: Vec<&str> = keys.lines().next().unwrap().split(", ").collect();
        let cells = cells(section_of(page, heading), "`");
        let mut rows: Vec<&str> = cells
            .iter()
            .flat_map(|cell| cell.split(", "))
            .map(|key| key.trim_matches('`'))
            .collect();
        keys.sort_unstable();
        rows.sort_unstable();
        assert_eq!(rows, keys, "{heading}");
    }
}
