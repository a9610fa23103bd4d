//! The task protocol, version 1 (spec 14), as the supervisor and our own children speak it.
//!
//! JSON lines on two pipes that every command inherits: it reads descriptor 3 and writes descriptor 4. A
//! command that says nothing is treated like one that knows nothing of us.
//!
//! | up (4) | means |
//! |---|---|
//! | `{"type":"hello","protocol":1,"handles":["stop","pause"]}` | I take part; these I do myself, the rest by signals; another version ends the attempt |
//! | `{"type":"checkpoint"}` | I am alive; after hello the only thing that counts for `idle` |
//! | `{"type":"progress","done":1,"total":2,"unit":"rows","message":"…"}` | how far I am; only `done` is needed |
//! | `{"type":"log","level":"info","message":"…"}` | a line for the log |
//! | `{"type":"paused","epoch":1}` | the pause is reached; `epoch` may be left out |
//! | `{"type":"result","value":…}` | my result; the last one counts, if I exit with 0 |
//! | `{"type":"failure","message":"…","retryable":false,"kind":"panic"}` | I failed; wins over a result and over exit 0; `kind` may be `panic`, `result_invalid` or `launch_failed`, else it is `exception` |
//!
//! | down (3) | means |
//! |---|---|
//! | `{"type":"start","protocol":1,"task_id":…,"name":…,"attempt":…,"args":…,"upstream":{…},"artifact_dir":…}` | always first |
//! | `{"type":"pause","epoch":1}` | suspend yourself and say `paused` |
//! | `{"type":"resume"}` | go on |
//! | `{"type":"stop","reason":"…","grace_ms":10000}` | end; after the grace comes SIGKILL |
//!
//! Other types are ignored, and so are other keys. A line that is no such message is survived; if it holds
//! `"result"`, the attempt fails with `result_invalid` unless a valid result follows, whatever its exit code; one
//! with `"failure"` is a failure, and one with `"hello"` a hello of another version.
//! After a signal that was not ours it has crashed, whatever it said. Long texts are cut and say so.
//!
//! A program built with this library can be asked for more: see `serve`. There the supervisor may send
//! `{"type":"list","protocol":1}` in place of `start`, and the program answers with its tasks.

mod channel;
mod down;
mod lines;
mod session;
mod up;

pub(crate) use channel::{Channel, Pending};
pub(crate) use down::{Down, Start};
pub use lines::MAX_LINE;
pub(crate) use lines::{Line, Lines};
pub(crate) use session::{Heard, Partner, Session};
pub(crate) use up::Up;

/// The version that we speak.
pub(crate) const VERSION: u64 = 1;

/// The child's end for reading.
pub(crate) const CHILD_IN: i32 = 3;
/// The child's end for writing.
pub(crate) const CHILD_OUT: i32 = 4;
