//! What a body tells while it runs.

use chongming_core::{AttemptEnd, Progress, Report, Value};

use crate::breach::{Breach, Outcome, present, same};
use crate::executor::stage::{Folder, Stage};

/// The levels that the body logs at, in turn.
const LEVELS: [&str; 4] = ["debug", "info", "warning", "error"];

fn activities(stage: &Stage<'_>, body: &str, args: Value) -> Outcome<usize> {
    let reports = stage.launch(body, args)?.reports()?;
    Ok(reports.iter().filter(|report| **report == Report::Activity).count())
}

pub(in crate::executor) fn the_last_progress_is_reported(stage: Stage<'_>) -> Outcome {
    let reports = stage.launch("progress", 100_u32)?.reports()?;
    let progress: Vec<&Progress> = reports
        .iter()
        .filter_map(|report| match report {
            Report::Progress(progress) => Some(progress),
            Report::Launched
            | Report::LaunchFailed(_)
            | Report::Paused { .. }
            | Report::Activity
            | Report::Ended(_) => None,
        })
        .collect();
    let is_ordered = progress.is_sorted_by(|earlier, later| earlier.done < later.done);
    same("whether progress comes in order", is_ordered, true)?;
    let last = Progress {
        done: 100.5,
        total: Some(1e15),
        unit: Some("Zeilen".into()),
        message: Some("同步 🎉".into()),
    };
    same("the last progress", progress.last().copied(), Some(&last))
}

pub(in crate::executor) fn a_heartbeat_is_a_sign_of_life(stage: Stage<'_>) -> Outcome {
    same("signs of life", activities(&stage, "heartbeat", Value::Null)? > 0, true)
}

pub(in crate::executor) fn a_checkpoint_is_a_sign_of_life(stage: Stage<'_>) -> Outcome {
    same("signs of life", activities(&stage, "checkpoint", Value::Null)? > 0, true)
}

pub(in crate::executor) fn progress_is_no_sign_of_life(stage: Stage<'_>) -> Outcome {
    same("signs of life", activities(&stage, "progress", Value::Int(3))?, 0)
}

pub(in crate::executor) fn its_log_has_its_lines(stage: Stage<'_>) -> Outcome {
    let folder = Folder::new()?;
    let lines = ["first", "同步 🎉", "", "last"];
    let args = Value::List(lines.iter().map(|line| Value::String((*line).to_owned())).collect());
    let mut prepared = stage.prepare("log", args)?;
    let files = folder.files();
    prepared.launch.files = Some(files.clone());
    same("the end", stage.start(prepared)?.end()?, AttemptEnd::Completed(Value::Null))?;
    let text = std::fs::read_to_string(files.log)?;
    same("lines in the log", text.lines().count(), lines.len())?;
    // What else stands in a line is the executor's.
    for (line, (level, message)) in text.lines().zip(LEVELS.iter().zip(lines)) {
        let is_it = line.ends_with(message) && line.to_lowercase().contains(level);
        if !is_it {
            return Err(Breach::of("the log", format_args!("{level}: {message}"), line));
        }
    }
    Ok(())
}

pub(in crate::executor) fn its_artifacts_are_kept(stage: Stage<'_>) -> Outcome {
    let folder = Folder::new()?;
    let mut prepared = stage.prepare("artifact", "kept")?;
    let files = folder.files();
    prepared.launch.files = Some(files.clone());
    same("the end", stage.start(prepared)?.end()?, AttemptEnd::Completed(Value::Bool(true)))?;
    let text = std::fs::read_to_string(files.artifact_dir.join("artifact")).ok();
    same("the artifact", present("the artifact", text)?.as_str(), "kept")
}

pub(in crate::executor) fn without_files_nothing_is_kept(stage: Stage<'_>) -> Outcome {
    let end = stage.launch("artifact", "lost")?.end()?;
    same("an artifact folder where there is none", end, AttemptEnd::Completed(Value::Bool(false)))?;
    let lines = Value::List(vec![Value::String("lost".to_owned())]);
    let end = stage.launch("log", lines)?.end()?;
    same("a log where there is none", end, AttemptEnd::Completed(Value::Null))
}
