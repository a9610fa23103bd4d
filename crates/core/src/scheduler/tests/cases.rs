//! Single histories, made by hand.

use super::*;

/// Of a task without any needs, under this policy.
fn submission(policy: usize) -> Event {
    Event::Submit { priority: 0, bucket: None, tags: vec![false; 3], policy, blocked: false }
}

/// A world with one task under policy 0 (one attempt, no time-outs, can be killed) or another.
fn one(number: usize) -> (World, TaskKey) {
    let mut world = World::new(Limits { max_parallel: 1, ..Limits::default() });
    world.handle(submission(number));
    world.handle(Event::SettleAll);
    let key = world.keys[0];
    (world, key)
}

fn words(world: &World, key: TaskKey) -> Vec<String> {
    world.trail[&key].iter().map(|t| format!("{}→{} {}", t.from, t.to, t.trigger)).collect()
}

#[test]
fn the_main_road() {
    let (mut world, key) = one(0);
    world.handle(Event::Report(0, 0));
    world.handle(Event::Report(0, 3));
    assert_eq!(
        words(&world, key),
        [
            "pending→queued orchestrator:dependencies_resolved",
            "queued→starting scheduler:dispatch",
            "starting→running executor:launched",
            "running→succeeded executor:completed",
        ]
    );
}

#[test]
fn a_persons_stop_outranks_a_timeouts() {
    let (mut world, key) = one(2);
    world.handle(Event::Report(0, 0));
    world.handle(Event::Advance(40));
    world.handle(Event::End(0, 3));
    world.handle(Event::Report(0, 5));
    assert_eq!(
        words(&world, key)[3..],
        ["running→stopping runtime:timeout_attempt", "stopping→stopped runtime:stop_confirmed"]
    );
}

#[test]
fn paused_time_does_not_count() {
    let (mut world, key) = one(2);
    world.handle(Event::Report(0, 0));
    world.handle(Event::Advance(30));
    world.handle(Event::Pause(0, 30));
    world.handle(Event::Report(0, 2));
    assert_eq!(world.scheduler.explain(key, world.now.mono), Some(Explanation::Resume));
    world.handle(Event::Advance(59));
    world.handle(Event::Advance(59));
    world.handle(Event::Resume(0));
    world.handle(Event::Advance(9));
    assert_eq!(world.scheduler.snapshot(key).unwrap().status(), Status::Running);
    world.handle(Event::Advance(1));
    assert_eq!(world.scheduler.snapshot(key).unwrap().status(), Status::Stopping);
}

#[test]
fn a_pause_that_is_not_reached_is_rolled_back() {
    let (mut world, key) = one(0);
    world.handle(Event::Report(0, 0));
    world.handle(Event::Pause(0, 10));
    world.handle(Event::Advance(10));
    assert_eq!(
        words(&world, key)[3..],
        ["running→pausing user:pause", "pausing→running runtime:pause_unconfirmed"]
    );
}

#[test]
fn what_cannot_be_killed_is_lost_and_frees_its_slot() {
    let (mut world, key) = one(1);
    world.handle(submission(0));
    world.handle(Event::Report(0, 0));
    world.handle(Event::End(0, 3));
    world.handle(Event::Advance(15));
    assert_eq!(words(&world, key).last().unwrap(), "stopping→lost runtime:stop_unconfirmed");
    let next = world.scheduler.snapshot(world.keys[1]).unwrap();
    assert_eq!(next.status(), Status::Starting);
}

#[test]
fn what_goes_on_in_spite_of_a_stop_is_lost_and_not_retried() {
    let (mut world, key) = one(2);
    world.handle(Event::Report(0, 0));
    world.handle(Event::Advance(40));
    world.handle(Event::Report(0, 7));
    assert_eq!(
        words(&world, key)[3..],
        ["running→stopping runtime:timeout_attempt", "stopping→lost runtime:stop_unconfirmed"]
    );
}

#[test]
fn a_stop_before_the_launch_confirms_itself() {
    let mut world = World::new(Limits { max_parallel: 1, ..Limits::default() });
    world.handle(submission(0));
    world.handle(Event::End(0, 3));
    world.handle(Event::SettleAll);
    assert_eq!(
        words(&world, world.keys[0])[2..],
        ["starting→stopping user:stop", "stopping→stopped runtime:stop_confirmed"]
    );
    assert!(world.carriers.is_empty() && world.scheduler.is_empty());
}

#[test]
fn none_starts_once_a_sibling_has_failed_but_the_exempt_and_strangers() {
    let mut world = World::new(Limits { max_parallel: 1, ..Limits::default() });
    let siblings = Siblings::new();
    let ties = [Some(&siblings), Some(&siblings), Some(&siblings.exempt()), Some(&siblings), None];
    for tie in ties.map(|tie| tie.cloned()) {
        world.siblings = tie;
        world.handle(submission(0));
    }
    world.handle(Event::SettleAll);
    let statuses = |world: &World| {
        let status = |key| world.scheduler.snapshot(key).map(|task| task.status());
        world.keys.iter().map(|key| status(*key)).collect::<Vec<_>>()
    };
    for kind in [0, 4] {
        world.handle(Event::Report(0, kind));
    }
    world.handle(Event::SettleAll);
    let queued = Some(Status::Queued);
    let why = world.scheduler.explain(world.keys[1], world.now.mono);
    assert_eq!(why, Some(Explanation::Siblings));
    assert_eq!(statuses(&world), [None, queued, Some(Status::Starting), queued, queued]);
    for kind in [0, 3] {
        world.handle(Event::Report(2, kind));
    }
    world.handle(Event::SettleAll);
    assert_eq!(statuses(&world), [None, queued, None, queued, Some(Status::Starting)]);
    // Whoever tied them together ends them.
    for number in [1, 3] {
        world.handle(Event::End(number, 2));
        world.handle(Event::SettleAll);
        let trail = words(&world, world.keys[number]);
        assert_eq!(trail.len(), 2, "{trail:?}");
    }
    assert_eq!(statuses(&world), [None, None, None, None, Some(Status::Starting)]);
}
