//! When output is coloured, and how.

use std::ffi::OsStr;

use chongming_core::Status;
use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Color, Style};

/// The value of `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always, also into a file or pipe
    Always,
    /// Never
    Never,
}

/// The parts of the environment that speak about colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ColorEnvironment {
    no_color: bool,
    dumb_terminal: bool,
}

impl ColorEnvironment {
    /// Reads `NO_COLOR` (any value but an empty one counts) and `TERM`.
    pub(crate) fn from_process() -> Self {
        Self {
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            dumb_terminal: std::env::var_os("TERM").as_deref() == Some(OsStr::new("dumb")),
        }
    }
}

impl ColorChoice {
    /// Whether a stream is written in colour.
    pub(crate) fn enabled(self, stream_is_terminal: bool, environment: ColorEnvironment) -> bool {
        match self {
            Self::Auto => stream_is_terminal && !environment.no_color && !environment.dumb_terminal,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// What a piece of text means; the colour follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Ordinary text.
    Plain,
    /// A header.
    Header,
    /// It went well.
    Good,
    /// It is under way.
    Active,
    /// It waits or was called off.
    Muted,
    /// It went wrong.
    Bad,
}

impl Tone {
    /// The tone of a task's status.
    pub(crate) fn of_status(status: Status) -> Self {
        match status {
            Status::Succeeded => Self::Good,
            Status::Starting
            | Status::Running
            | Status::Pausing
            | Status::Paused
            | Status::Stopping => Self::Active,
            Status::Pending
            | Status::Blocked
            | Status::Queued
            | Status::RetryWait
            | Status::Stopped
            | Status::Cancelled
            | Status::Skipped => Self::Muted,
            Status::Failed | Status::Lost => Self::Bad,
        }
    }

    fn style(self) -> Style {
        let color = |color: AnsiColor| Style::new().fg_color(Some(Color::Ansi(color)));
        match self {
            Self::Plain => Style::new(),
            Self::Header => Style::new().bold(),
            Self::Good => color(AnsiColor::Green),
            Self::Active => color(AnsiColor::Cyan),
            Self::Muted => Style::new().dimmed(),
            Self::Bad => color(AnsiColor::Red),
        }
    }

    /// Appends text in this tone. `text` must already be harmless.
    pub(crate) fn paint(self, out: &mut String, enabled: bool, text: impl FnOnce(&mut String)) {
        let style = self.style();
        if enabled {
            out.push_str(&style.render().to_string());
        }
        text(out);
        if enabled {
            out.push_str(&style.render_reset().to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_beats_the_environment_and_the_environment_beats_the_terminal() {
        let plain = ColorEnvironment::default();
        let no_color = ColorEnvironment { no_color: true, ..plain };
        let dumb = ColorEnvironment { dumb_terminal: true, ..plain };
        for (choice, terminal, environment, enabled) in [
            (ColorChoice::Auto, true, plain, true),
            (ColorChoice::Auto, false, plain, false),
            (ColorChoice::Auto, true, no_color, false),
            (ColorChoice::Auto, true, dumb, false),
            (ColorChoice::Always, false, no_color, true),
            (ColorChoice::Never, true, plain, false),
        ] {
            assert_eq!(
                choice.enabled(terminal, environment),
                enabled,
                "{choice:?} {environment:?}"
            );
        }
    }

    #[test]
    fn plain_text_gets_no_escape_sequences() {
        let painted = |tone: Tone, enabled| {
            let mut out = String::new();
            tone.paint(&mut out, enabled, |out| out.push('x'));
            out
        };
        assert_eq!(painted(Tone::Bad, false), "x");
        assert_eq!(painted(Tone::Plain, true), "x");
        assert_eq!(painted(Tone::Bad, true), "\x1b[31mx\x1b[0m");
    }
}
