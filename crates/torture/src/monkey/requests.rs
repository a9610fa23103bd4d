//! What people ask for: commands under way, and what they answered.

use std::process::Child;

use super::Monkey;
use crate::history::Answer;

/// Commands under way at once.
const MOST_COMMANDS: usize = 6;

/// A command under way.
pub(super) struct Asked {
    pub(super) child: Child,
    pub(super) name: String,
    /// What it asked for, if it changes a task.
    reason: Option<String>,
    reconciles: bool,
}

impl Monkey {
    pub(super) fn look_at_requests(&mut self) -> Result<(), String> {
        for mut asked in std::mem::take(&mut self.asked) {
            match asked.child.try_wait() {
                Ok(Some(_)) => self.told(&asked),
                Ok(None) => self.asked.push(asked),
                Err(error) => return Err(format!("a command: {error}")),
            }
        }
        Ok(())
    }

    fn told(&mut self, asked: &Asked) {
        let said = self.programs.output_of(&asked.name);
        let Ok(serde_json::Value::Array(items)) = serde_json::from_str(&said) else { return };
        for item in items {
            let text = |key: &str| item.get(key).and_then(|value| value.as_str()).unwrap_or("");
            if let Some(reason) = &asked.reason {
                let accepted = item.get("accepted").and_then(serde_json::Value::as_bool);
                // It came to its end otherwise, after it had been asked: that is an effect, too.
                let accepted = accepted != Some(false) || text("result").contains("already ended");
                self.history.answers.push(Answer { reason: reason.clone(), accepted });
            }
            if asked.reconciles && text("outcome") == "adoptable" {
                let id = text("task_id").to_owned();
                if !self.adoptable.contains(&id) {
                    self.adoptable.push(id);
                }
            }
        }
    }

    pub(super) fn control(&mut self) -> Result<(), String> {
        let verb = ["stop", "pause", "pause", "pause", "resume", "resume", "cancel"];
        let verb = self.random.pick(&verb).copied().unwrap_or("pause");
        let at_work = self.at_work.make_contiguous();
        let Some(id) = self.random.pick(at_work).cloned() else { return Ok(()) };
        let waits = self.random.within(0, 2) == 0;
        if self.asked.len() >= MOST_COMMANDS {
            return Ok(());
        }
        self.numbers += 1;
        let name = format!("c{}", self.numbers);
        let mut words = vec![verb, &id, "--reason", &name];
        if waits {
            words.extend(["--wait", "3s"]);
        }
        let child = self.programs.ask(&name, &words)?;
        self.note(verb, &format!("{id} as {name}"));
        self.asked.push(Asked { child, reason: Some(name.clone()), name, reconciles: false });
        Ok(())
    }

    pub(super) fn reconcile(&mut self) -> Result<(), String> {
        let places = self.random.within(1, 4);
        for _ in 0..places {
            if self.asked.len() < MOST_COMMANDS {
                self.numbers += 1;
                let name = format!("c{}", self.numbers);
                let child = self.programs.ask(&name, &["reconcile", "--reason", "the monkey"])?;
                self.note("reconcile", &name);
                self.asked.push(Asked { child, name, reason: None, reconciles: true });
            }
        }
        Ok(())
    }
}
