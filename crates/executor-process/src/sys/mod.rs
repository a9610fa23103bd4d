//! The system calls that no safe crate offers. The only place with `unsafe`.
#![allow(unsafe_code)]

mod inherited;
mod pidfd;
mod spawn;

pub use inherited::was_stdout_closed;
pub(crate) use inherited::{inode_of_inherited, take_inherited};
pub(crate) use pidfd::{can_signal_group, signal_group};
pub(crate) use spawn::{
    Place, Spawn, block_sigpipe, make_children_waitable, spawn, spawn_if, unblock_ends,
};
