use super::*;

const TERM: Act = Act::Signal(Posix::TERM);
const CONT: Act = Act::Signal(Posix::CONT);
const KILL: Act = Act::Signal(Posix::KILL);
const STOP: Act = Act::Signal(Posix::STOP);

/// Feeds events, each at its millisecond, and compares everything that is to be done.
fn check(grace_ms: u64, steps: &[(u64, Event, &[Act])]) -> Life {
    check_life(Life::new(Duration::from_millis(grace_ms)), steps)
}

fn check_life(mut life: Life, steps: &[(u64, Event, &[Act])]) -> Life {
    let start = epoch();
    for (ms, event, expected) in steps {
        let mut acts = Vec::new();
        life.on(*event, start + Duration::from_millis(*ms), &mut acts);
        assert_eq!(&acts, expected, "{event:?} at {ms}");
    }
    life
}

fn epoch() -> Instant {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn wake(ms: u64) -> Act {
    Act::WakeAt(epoch() + Duration::from_millis(ms))
}

#[test]
fn a_program_that_does_not_serve_is_killed_in_time() {
    let limit = HELLO_LIMIT.as_millis() as u64;
    let new = || Life::of_server(Duration::from_secs(10), epoch());
    let told = check_life(
        new(),
        &[
            (0, Event::Started, &[wake(limit)]),
            (1, Event::Pause { epoch: 1 }, &[Act::TellPause { epoch: 1 }]),
            (limit - 1, Event::Tick, &[]),
            (limit, Event::Tick, &[KILL, wake(limit + 1000)]),
            (limit, Event::LeaderEnded, &[Act::LookWhatIsLeft]),
        ],
    )
    .told_to_end();
    assert!(!told);
    check_life(
        new(),
        &[
            (0, Event::Started, &[wake(limit)]),
            (9, Event::Hello { stop: true, pause: true }, &[]),
            (limit, Event::Tick, &[]),
            (limit, Event::Stop, &[Act::TellStop, CONT]),
        ],
    );
}

#[test]
fn one_that_speaks_another_version_is_ended() {
    let life = check(
        200,
        &[
            (0, Event::Started, &[]),
            (0, Event::Pause { epoch: 1 }, &[STOP, Act::LookWhetherStopped]),
            (1, Event::Foreign, &[TERM, CONT, wake(201)]),
            (2, Event::Pause { epoch: 2 }, &[]),
            (201, Event::Tick, &[KILL, wake(1201)]),
        ],
    );
    assert!(!life.told_to_end());
}

#[test]
fn a_clean_end_needs_one_look() {
    let life = check(
        10_000,
        &[
            (0, Event::LeaderEnded, &[Act::LookWhatIsLeft]),
            (0, Event::Left(Left::Nothing), &[Act::End]),
            (1, Event::Kill, &[]),
        ],
    );
    assert!(!life.told_to_end());
}

#[test]
fn left_overs_are_terminated_then_killed() {
    check(
        8,
        &[
            (0, Event::LeaderEnded, &[Act::LookWhatIsLeft]),
            (0, Event::Left(Left::Some), &[TERM, CONT, wake(5)]),
            (5, Event::Tick, &[Act::LookWhatIsLeft]),
            (5, Event::Left(Left::Some), &[wake(8)]),
            (8, Event::Tick, &[Act::LookWhatIsLeft]),
            (8, Event::Left(Left::Some), &[KILL, wake(28)]),
            (28, Event::Tick, &[Act::LookWhatIsLeft]),
            (28, Event::Left(Left::Nothing), &[Act::End]),
        ],
    );
}

#[test]
fn left_overs_get_a_second_at_most() {
    check(
        60_000,
        &[
            (0, Event::LeaderEnded, &[Act::LookWhatIsLeft]),
            (0, Event::Left(Left::Some), &[TERM, CONT, wake(5)]),
            (1000, Event::Left(Left::Some), &[KILL, wake(1010)]),
            (1010, Event::Left(Left::OutOfReach), &[Act::End]),
        ],
    );
}

#[test]
fn what_nobody_may_end_gets_its_second_even_after_a_kill() {
    let killed: [(u64, Event, &[Act]); 4] = [
        (0, Event::Kill, &[KILL, wake(1000)]),
        (10, Event::LeaderEnded, &[Act::LookWhatIsLeft]),
        (10, Event::Left(Left::OutOfReach), &[KILL, wake(15)]),
        (1000, Event::Left(Left::OutOfReach), &[KILL, wake(1010)]),
    ];
    let then = |last: &[(u64, Event, &[Act])]| check(10_000, &[&killed, last].concat());
    then(&[(1010, Event::Left(Left::OutOfReach), &[Act::End])]);
    // It has ended.
    then(&[(1010, Event::Left(Left::Nothing), &[Act::End])]);
    // It runs as our user by now.
    then(&[
        (1010, Event::Left(Left::Some), &[KILL, wake(1030)]),
        (1030, Event::Left(Left::Nothing), &[Act::End]),
    ]);
    check(0, &[killed[0], killed[1], (10, Event::Left(Left::OutOfReach), &[Act::End])]);
}

#[test]
fn a_kill_reaches_left_overs_at_once() {
    let life = check(
        10_000,
        &[
            (0, Event::Stop, &[TERM, CONT]),
            (9, Event::Kill, &[KILL, wake(1009)]),
            (10, Event::LeaderEnded, &[Act::LookWhatIsLeft]),
            (10, Event::Left(Left::Some), &[KILL, wake(15)]),
            (15, Event::Left(Left::Nothing), &[Act::End]),
        ],
    );
    assert!(life.told_to_end());
    let life = check(
        10_000,
        &[
            (0, Event::LeaderEnded, &[Act::LookWhatIsLeft]),
            (0, Event::Left(Left::Some), &[TERM, CONT, wake(5)]),
            (1, Event::Stop, &[]),
            (2, Event::Kill, &[Act::LookWhatIsLeft]),
            (2, Event::Left(Left::Some), &[KILL, wake(12)]),
        ],
    );
    assert!(!life.told_to_end(), "its own end came first");
}

#[test]
fn a_pause_is_reached_when_the_leader_is_stopped() {
    check(
        10_000,
        &[
            (0, Event::Pause { epoch: 1 }, &[STOP, Act::LookWhetherStopped]),
            (0, Event::Stopped(false), &[wake(1)]),
            (1, Event::Tick, &[Act::LookWhetherStopped]),
            (1, Event::Stopped(false), &[wake(3)]),
            (3, Event::Stopped(true), &[Act::Paused { epoch: 1 }]),
            (4, Event::Resume, &[CONT]),
            (5, Event::Pause { epoch: 2 }, &[STOP, Act::LookWhetherStopped]),
            (6, Event::Resume, &[CONT]),
            (7, Event::Stopped(true), &[]),
            (8, Event::Tick, &[]),
            (9, Event::Pause { epoch: 3 }, &[STOP, Act::LookWhetherStopped]),
            (9, Event::LeaderEnded, &[Act::LookWhatIsLeft]),
            (9, Event::Stopped(true), &[]),
        ],
    );
}

#[test]
fn a_leader_that_cannot_stop_gets_another_chance() {
    check(
        10_000,
        &[
            (0, Event::Pause { epoch: 1 }, &[STOP, Act::LookWhetherStopped]),
            (0, Event::Stopped(false), &[wake(1)]),
            (1, Event::Stopped(false), &[wake(3)]),
            (3, Event::Stopped(false), &[wake(7)]),
            (7, Event::Stopped(false), &[wake(15)]),
            (15, Event::Tick, &[Act::LookWhetherStopped]),
            (15, Event::Stopped(false), &[CONT, wake(16)]),
            (16, Event::Tick, &[STOP, Act::LookWhetherStopped]),
            (16, Event::Stopped(true), &[Act::Paused { epoch: 1 }]),
        ],
    );
}

#[test]
fn what_it_handles_is_told_by_the_protocol() {
    check(
        10_000,
        &[
            (0, Event::Hello { stop: true, pause: true }, &[]),
            (1, Event::SaidPaused { epoch: None }, &[]),
            (1, Event::Pause { epoch: 1 }, &[Act::TellPause { epoch: 1 }]),
            (2, Event::SaidPaused { epoch: None }, &[Act::Paused { epoch: 1 }]),
            (3, Event::Resume, &[Act::TellResume]),
            (4, Event::Pause { epoch: 2 }, &[Act::TellPause { epoch: 2 }]),
            (4, Event::SaidPaused { epoch: Some(1) }, &[]),
            (5, Event::SaidPaused { epoch: Some(2) }, &[Act::Paused { epoch: 2 }]),
            (6, Event::Stop, &[Act::TellStop, CONT]),
            (7, Event::Kill, &[KILL, wake(1007)]),
            (1007, Event::Tick, &[Act::TellIfOutOfReach]),
        ],
    );
}

#[test]
fn what_it_does_not_handle_goes_by_signals() {
    check(
        10_000,
        &[
            (0, Event::Pause { epoch: 1 }, &[STOP, Act::LookWhetherStopped]),
            (0, Event::Stopped(true), &[Act::Paused { epoch: 1 }]),
            (1, Event::Hello { stop: false, pause: true }, &[]),
            (2, Event::Pause { epoch: 2 }, &[STOP, Act::LookWhetherStopped]),
            (3, Event::Stopped(true), &[Act::Paused { epoch: 2 }]),
            (4, Event::Resume, &[CONT]),
            (5, Event::Pause { epoch: 3 }, &[Act::TellPause { epoch: 3 }]),
            (6, Event::Stop, &[TERM, CONT]),
        ],
    );
}

#[test]
fn a_stop_continues_what_is_suspended_and_no_pause_undoes_it() {
    check(
        10_000,
        &[
            (0, Event::Pause { epoch: 1 }, &[STOP, Act::LookWhetherStopped]),
            (0, Event::Stopped(true), &[Act::Paused { epoch: 1 }]),
            (1, Event::Stop, &[TERM, CONT]),
            (2, Event::Pause { epoch: 2 }, &[]),
            (2, Event::Resume, &[]),
        ],
    );
}
