//! The task protocol, version 1, seen from the supervisor (spec 14).
//!
//! JSON lines on two pipes that every command inherits: it reads descriptor 3 and writes descriptor 4. A
//! command that says nothing is treated like one that knows nothing of us.
//!
//! | up (4) | means |
//! |---|---|
//! | `{"type":"hello","protocol":1,"handles":["stop","pause"]}` | I take part; these I do myself, the rest by signals |
//! | `{"type":"checkpoint"}` | I am alive; after hello the only thing that counts for `idle` |
//! | `{"type":"progress","done":1,"total":2,"unit":"rows","message":"…"}` | how far I am; only `done` is needed |
//! | `{"type":"log","level":"info","message":"…"}` | a line for the log |
//! | `{"type":"paused","epoch":1}` | the pause is reached; `epoch` may be left out |
//! | `{"type":"result","value":…}` | my result; the last one counts, if I exit with 0 |
//! | `{"type":"failure","message":"…","retryable":false}` | I failed; wins over a result and over exit 0 |
//!
//! | down (3) | means |
//! |---|---|
//! | `{"type":"start","protocol":1,"task_id":…,"name":…,"attempt":…,"args":…,"upstream":{…},"artifact_dir":…}` | always first |
//! | `{"type":"pause","epoch":1}` | suspend yourself and say `paused` |
//! | `{"type":"resume"}` | go on |
//! | `{"type":"stop","reason":"…","grace_ms":10000}` | end; after the grace comes SIGKILL |
//!
//! Other types are ignored, and so are other keys. A line that is no such message is survived; if it holds
//! `"result"`, the attempt fails with `result_invalid` unless a valid result follows.

mod channel;
mod lines;
mod message;
mod session;

pub(crate) use channel::{Channel, Pending};
pub(crate) use message::Down;
pub(crate) use session::Heard;

/// The child's end for reading.
pub(crate) const CHILD_IN: i32 = 3;
/// The child's end for writing.
pub(crate) const CHILD_OUT: i32 = 4;
