//! The control channel: requests to the holder of a task, with receipts (spec 11).

use std::fmt;
use std::str::FromStr;

use crate::id::{CommandId, IncarnationId, TaskId};
use crate::text::Text;
use crate::time::Timestamp;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word that stores and JSON use.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|x| x.as_str() == word).ok_or_else(|| UnknownWord {
                    what: $what,
                    word: word.chars().take(60).collect(),
                })
            }
        }
    };
}

/// A word in the store that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    what: &'static str,
    word: String,
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no {} known to this version", self.word, self.what)
    }
}

impl std::error::Error for UnknownWord {}

words! {
    /// What the holder is asked to do.
    CommandKind, "command" {
        /// End it as `stopped`.
        Stop = "stop",
        /// Withdraw it: `cancelled`.
        Cancel = "cancel",
        /// Suspend it.
        Pause = "pause",
        /// Let it go on.
        Resume = "resume",
        /// Say what it waits for.
        Explain = "explain",
    }
}

words! {
    /// What became of a command.
    ReceiptKind, "receipt" {
        /// Done as asked.
        Applied = "applied",
        /// Asked, but it did not come to it in time; nothing changed in the end.
        NotConfirmed = "not_confirmed",
        /// Not possible in the task's state; nothing changed.
        Refused = "refused",
        /// The task had ended before.
        AlreadyEnded = "already_ended",
        /// The task has another holder by now.
        Superseded = "superseded",
    }
}

/// What really happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The kind.
    pub kind: ReceiptKind,
    /// In words (for `explain`: the answer).
    pub detail: Text,
}

impl Receipt {
    /// A receipt with these words.
    pub fn new(kind: ReceiptKind, detail: impl AsRef<str>) -> Self {
        Self { kind, detail: crate::text::clean(detail.as_ref()) }
    }
}

/// A request as it is handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCommand {
    /// Its id.
    pub id: CommandId,
    /// The task.
    pub task_id: TaskId,
    /// The incarnation that holds the task, as the issuer saw it: only that one may claim it.
    pub holder: IncarnationId,
    /// What to do.
    pub kind: CommandKind,
    /// Why, in a person's words.
    pub reason: Option<Text>,
    /// Who asks.
    pub issuer: Text,
    /// When, by the issuer's clock.
    pub issued_at: Timestamp,
}

/// A request as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What was handed in.
    pub request: NewCommand,
    /// Until when its claim lasts, if it was claimed.
    pub claimed_until: Option<Timestamp>,
    /// What happened, once it is completed.
    pub receipt: Option<Receipt>,
    /// When it was completed.
    pub completed_at: Option<Timestamp>,
}
