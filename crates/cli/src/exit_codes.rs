//! The exit codes of the command line: a public interface, for scripts to branch on.

/// The command did what it was asked, and what it asked about is well.
pub(crate) const DONE: u8 = 0;

/// The command itself failed: bad usage, a wrong id, an unreadable manifest, a store that cannot be
/// opened, an output that cannot be written. What it was to report is not known.
pub(crate) const COMMAND_FAILED: u8 = 1;

/// The command worked, but the task that it ran or asked about did not succeed, was not confirmed
/// to have changed as asked, or an alert was found.
pub(crate) const NOT_SUCCEEDED: u8 = 3;
