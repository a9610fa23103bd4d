//! The system calls that no safe crate offers. The only place with `unsafe`.
#![allow(unsafe_code)]

mod pidfd;
mod spawn;

pub(crate) use pidfd::{can_signal_group, signal_group};
pub(crate) use spawn::{Place, Spawn, block_sigpipe, make_children_waitable, spawn};
