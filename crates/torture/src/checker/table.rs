//! The legal transitions once more, in the words of the specification (section 1): what is checked is not
//! allowed to check itself.

/// From (several), to (several), triggers (several).
const TABLE: &[(&str, &str, &str)] = &[
    ("pending", "queued", "orchestrator:dependencies_resolved"),
    ("pending", "blocked", "orchestrator:waiting_for_upstream"),
    ("pending blocked", "skipped", "orchestrator:upstream_unsatisfied"),
    ("blocked", "queued", "orchestrator:dependencies_resolved"),
    ("pending blocked queued retry_wait paused", "stopped", "user:stop runtime:shutdown"),
    ("pending blocked queued retry_wait paused", "cancelled", "orchestrator:fail_fast user:cancel"),
    ("queued", "starting", "scheduler:dispatch"),
    ("queued", "failed", "runtime:timeout_start"),
    ("starting", "running", "executor:launched"),
    ("starting", "retry_wait failed", "executor:launch_failed"),
    (
        "starting running pausing paused",
        "stopping",
        "user:stop runtime:shutdown user:cancel orchestrator:fail_fast runtime:timeout_attempt runtime:timeout_idle",
    ),
    ("running pausing paused", "succeeded", "executor:completed"),
    ("running pausing paused", "retry_wait failed", "executor:failed"),
    ("running", "pausing", "user:pause"),
    ("pausing", "paused", "runtime:pause_reached"),
    ("pausing", "running", "runtime:pause_unconfirmed user:resume"),
    ("paused", "running", "user:resume"),
    ("pending blocked queued paused retry_wait", "queued", "recovery:adopted"),
    ("retry_wait", "queued", "runtime:retry_due"),
    ("stopping", "stopped cancelled", "runtime:stop_confirmed"),
    ("stopping", "retry_wait failed", "runtime:timeout_confirmed executor:failed"),
    ("stopping", "succeeded", "executor:completed"),
    ("stopping", "lost", "runtime:stop_unconfirmed"),
    ("starting running pausing stopping", "lost", "recovery:lease_expired"),
    ("starting running pausing paused stopping", "lost", "executor:vanished"),
];

const TERMINAL: &str = "succeeded failed stopped cancelled skipped lost";
const IN_FLIGHT: &str = "starting running pausing stopping";

fn is_among(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

pub(super) fn is_legal(from: &str, to: &str, trigger: &str) -> bool {
    TABLE.iter().any(|(froms, tos, triggers)| {
        is_among(from, froms) && is_among(to, tos) && is_among(trigger, triggers)
    })
}

pub(super) fn is_terminal(status: &str) -> bool {
    is_among(status, TERMINAL)
}

pub(super) fn is_in_flight(status: &str) -> bool {
    is_among(status, IN_FLIGHT)
}
