//! The executor contract itself is tested by executors that break one clause each: the case of that clause must
//! notice.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use chongming_contract::executor::{CLAUSES, Fixture, run};
use chongming_core::{
    Abilities, AttemptEnd, AttemptFiles, AttemptSink, Carrier, Control, Executor, Failure,
    FailureKind, Launch, Report, Signal, Target, TaskContext, TaskId, ThreadExecutor,
    UnsupportedTarget, Value, attempt_files, run_body,
};

macro_rules! saboteurs {
    ($($fault:ident, $test:ident => $($clause:literal),+;)+) => {
        /// What an executor does wrong.
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Fault { Nothing, $($fault,)+ }

        $(
            #[test]
            fn $test() {
                let broken = run(&Sabotaged(Fault::$fault)).broken();
                for clause in [$($clause),+] {
                    assert!(broken.contains(&clause), "{:?}: only {broken:?}", Fault::$fault);
                }
            }
        )+

        const CAUGHT: &[&str] = &[$($($clause,)+)+];
    };
}

saboteurs! {
    RunsTwice, runs_twice => "launch::runs_its_body_once";
    NeverAsks, never_asks => "launch::what_may_not_begin_never_runs";
    SaysNothingOfTheLaunch, says_nothing_of_the_launch => "launch::reports_in_order";
    EndsTwice, ends_twice => "launch::reports_in_order", "stop::late_signals_change_nothing";
    RunsInline, runs_inline => "launch::returns_at_once";
    MixesCarriers, mixes_carriers => "launch::carriers_in_order";
    OneAtATime, one_at_a_time => "launch::holds_up_no_other", "kill::what_was_given_up_is_replaced";
    LosesArguments, loses_arguments =>
        "input::arguments_arrive", "result::the_value_is_delivered";
    AlwaysTheFirstAttempt, always_the_first_attempt => "input::it_knows_its_attempt";
    LosesUpstream, loses_upstream => "input::upstream_results_arrive";
    NullIsNoEnd, null_is_no_end => "result::null_is_a_value";
    LosesMessages, loses_messages => "result::an_error_is_an_exception";
    EverythingIsRetryable, everything_is_retryable =>
        "result::a_permanent_error_is_not_retryable",
        "result::arguments_that_do_not_fit_are_permanent";
    PanicIsAnException, panic_is_an_exception => "result::a_panic_is_a_failure";
    InvalidIsNull, invalid_is_null => "result::what_json_cannot_say_is_invalid";
    CrashIsSuccess, crash_is_success => "result::a_crash_harms_nobody";
    LosesTheLastProgress, loses_the_last_progress => "telling::the_last_progress_is_reported";
    LosesActivity, loses_activity =>
        "telling::a_heartbeat_is_a_sign_of_life", "telling::a_checkpoint_is_a_sign_of_life";
    ProgressIsActivity, progress_is_activity => "telling::progress_is_no_sign_of_life";
    LosesFiles, loses_files => "telling::its_log_has_its_lines", "telling::its_artifacts_are_kept";
    InventsFiles, invents_files => "telling::without_files_nothing_is_kept";
    StopIsIgnored, stop_is_ignored =>
        "stop::a_checkpoint_obeys", "stop::an_early_one_is_kept", "pause::a_stop_ends_it";
    LosesReasons, loses_reasons => "stop::its_reason_is_told";
    StopAlwaysInterrupts, stop_always_interrupts => "stop::a_result_before_it_was_seen_counts";
    StopNeverInterrupts, stop_never_interrupts => "stop::an_error_after_it_was_seen_confirms";
    SecondStopEndsAgain, second_stop_ends_again => "stop::a_second_one_changes_nothing";
    PausesOnce, pauses_once => "pause::any_number_of_times";
    OnlySaysPaused, only_says_paused => "pause::a_paused_body_stands_still";
    PauseIsIgnored, pause_is_ignored =>
        "pause::it_reaches_into_a_sleep", "pause::it_reaches_an_async_body";
    ResumeIsIgnored, resume_is_ignored => "pause::a_resume_takes_it_back";
    KillIsSaidToEnd, kill_is_said_to_end => "kill::it_ends_a_deaf_body_or_claims_no_end";
    ClaimsHardStop, claims_hard_stop =>
        "kill::it_ends_a_deaf_body_or_claims_no_end", "shutdown::what_still_runs_ends_or_can_be_stopped";
    KillIsIgnored, kill_is_ignored => "kill::it_ends_a_pause";
    RefusesEverything, refuses_everything => "target::what_it_carries_is_accepted";
    AcceptsEverything, accepts_everything => "target::what_it_cannot_carry_is_refused";
    LaunchesAnything, launches_anything => "target::a_launch_of_it_fails";
    KeepsThreads, keeps_threads =>
        "shutdown::many_launches_leave_no_threads", "shutdown::its_threads_end_with_it";
    WaitsInItsDrop, waits_in_its_drop => "shutdown::a_report_may_drop_it";
}

#[test]
fn an_honest_executor_passes() {
    let report = run(&Sabotaged(Fault::Nothing));
    assert!(report.passed(), "{report}");
}

#[test]
fn names_are_distinct_and_every_clause_has_a_saboteur() {
    let names: HashSet<_> = CLAUSES.iter().map(|clause| clause.name).collect();
    assert_eq!(names.len(), CLAUSES.len());
    let caught: HashSet<_> = CAUGHT.iter().copied().collect();
    assert_eq!(names.difference(&caught).collect::<Vec<_>>(), Vec::<&&str>::new());
}

struct Sabotaged(Fault);

impl Fixture for Sabotaged {
    fn executor(&self) -> Arc<dyn Executor> {
        let fault = self.0;
        match fault {
            Fault::OneAtATime => Arc::new(OneAtATime::new()),
            Fault::KeepsThreads => Arc::new(KeepsThreads),
            _ => Arc::new(Saboteur {
                threads: ThreadExecutor::new(),
                fault,
                running: Mutex::default(),
            }),
        }
    }

    /// What a saboteur does not do need not be awaited long.
    fn patience(&self) -> Duration {
        Duration::from_millis(if self.0 == Fault::Nothing { 60_000 } else { 300 })
    }
}

/// The thread executor, with one fault.
struct Saboteur {
    threads: ThreadExecutor,
    fault: Fault,
    /// Of each that was launched, a channel that closes at its end.
    running: Mutex<Vec<Receiver<()>>>,
}

/// Where one of them keeps files that nobody asked for.
fn invented() -> AttemptFiles {
    let id = TaskId::new(format!("chongming-contract-invented-{}", std::process::id())).unwrap();
    attempt_files(&std::env::temp_dir(), &id, 1)
}

impl Drop for Saboteur {
    fn drop(&mut self) {
        match self.fault {
            Fault::WaitsInItsDrop => {
                for ended in self.running.lock().unwrap().iter() {
                    let _ = ended.recv();
                }
            }
            Fault::InventsFiles => {
                let _ = std::fs::remove_dir_all(invented().log.parent().unwrap());
            }
            _ => {}
        }
    }
}

impl Executor for Saboteur {
    fn name(&self) -> &'static str {
        "saboteur"
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            hard_stop: self.fault == Fault::ClaimsHardStop,
            isolation: self.fault == Fault::CrashIsSuccess,
        }
    }

    fn check(&self, target: &Target) -> Result<(), UnsupportedTarget> {
        match self.fault {
            Fault::RefusesEverything => Err(UnsupportedTarget("no".to_owned())),
            Fault::AcceptsEverything => Ok(()),
            _ => self.threads.check(target),
        }
    }

    fn launch(&self, mut launch: Launch) -> Arc<dyn Carrier> {
        let (fault, sink) = (self.fault, Arc::clone(&launch.sink));
        let told = Arc::new(Told::default());
        let (ended, ends) = channel();
        launch.sink = Arc::new(Distorted { sink, fault, told: Arc::clone(&told), _ended: ended });
        match fault {
            Fault::LosesArguments => launch.args = Value::Null,
            Fault::AlwaysTheFirstAttempt => launch.attempt = 1,
            Fault::LosesUpstream => launch.upstream = Arc::default(),
            Fault::LosesFiles => launch.files = None,
            Fault::InventsFiles => {
                launch.files.get_or_insert_with(invented);
            }
            Fault::CrashIsSuccess if &*launch.name == "contract.crash" => {
                launch.sink.report(Report::Ended(AttemptEnd::Completed(Value::Null)));
                return Arc::new(Deaf);
            }
            Fault::LaunchesAnything if matches!(launch.target, Target::External(_)) => {
                launch.sink.report(Report::Launched);
                launch.sink.report(Report::Ended(AttemptEnd::Completed(Value::Null)));
                return Arc::new(Deaf);
            }
            Fault::RunsTwice => {
                let twin = Launch {
                    task_id: launch.task_id.clone(),
                    name: launch.name.clone(),
                    attempt: launch.attempt,
                    target: launch.target.clone(),
                    args: launch.args.clone(),
                    upstream: Arc::clone(&launch.upstream),
                    files: launch.files.clone(),
                    sink: Arc::new(Nobody(Arc::clone(&launch.sink))),
                };
                self.threads.launch(twin);
            }
            _ => {}
        }
        let talks = matches!(
            fault,
            Fault::KillIsSaidToEnd
                | Fault::OnlySaysPaused
                | Fault::EndsTwice
                | Fault::SecondStopEndsAgain
        );
        let sink = talks.then(|| Arc::clone(&launch.sink));
        let carrier = self.threads.launch(launch);
        if fault == Fault::RunsInline {
            let _ = ends.recv();
        } else {
            self.running.lock().unwrap().push(ends);
        }
        Arc::new(Bent { carrier, fault, told, sink })
    }

    fn launch_all(&self, launches: Vec<Launch>) -> Vec<Arc<dyn Carrier>> {
        let mut carriers: Vec<_> = launches.into_iter().map(|launch| self.launch(launch)).collect();
        if self.fault == Fault::MixesCarriers {
            carriers.reverse();
        }
        carriers
    }
}

/// What a carrier was told.
#[derive(Default)]
struct Told {
    stops: AtomicU64,
    pauses: AtomicU64,
}

/// A sink that hands on something else.
struct Distorted {
    sink: Arc<dyn AttemptSink>,
    fault: Fault,
    told: Arc<Told>,
    _ended: Sender<()>,
}

impl AttemptSink for Distorted {
    fn report(&self, report: Report) {
        let stopped = self.told.stops.load(Ordering::Acquire) > 0;
        let report = match (self.fault, report) {
            (Fault::SaysNothingOfTheLaunch, Report::Launched)
            | (Fault::LosesActivity, Report::Activity)
            | (Fault::NullIsNoEnd, Report::Ended(AttemptEnd::Completed(Value::Null))) => return,
            (Fault::LosesTheLastProgress, Report::Progress(progress))
                if progress.message.is_some() =>
            {
                return;
            }
            (Fault::ProgressIsActivity, report @ Report::Progress(_)) => {
                self.sink.report(Report::Activity);
                report
            }
            (Fault::EndsTwice, report @ Report::Ended(_)) => {
                self.sink.report(report.clone());
                report
            }
            (Fault::StopAlwaysInterrupts, Report::Ended(AttemptEnd::Completed(_))) if stopped => {
                Report::Ended(AttemptEnd::Interrupted { message: None })
            }
            (Fault::StopNeverInterrupts, Report::Ended(AttemptEnd::Interrupted { message })) => {
                let message = message.unwrap_or_default();
                let failure = Failure::new(FailureKind::Exception, message);
                Report::Ended(AttemptEnd::Failed(failure))
            }
            (fault, Report::Ended(AttemptEnd::Failed(mut failure))) => {
                match (fault, failure.kind) {
                    (Fault::LosesMessages, _) => failure.message = "it failed".into(),
                    (Fault::EverythingIsRetryable, _) => failure.retryable = true,
                    (Fault::PanicIsAnException, FailureKind::Panic) => {
                        failure.kind = FailureKind::Exception;
                    }
                    (Fault::InvalidIsNull, FailureKind::ResultInvalid) => {
                        self.sink.report(Report::Ended(AttemptEnd::Completed(Value::Null)));
                        return;
                    }
                    _ => {}
                }
                Report::Ended(AttemptEnd::Failed(failure))
            }
            (_, report) => report,
        };
        self.sink.report(report);
    }

    fn may_begin(&self) -> bool {
        self.fault == Fault::NeverAsks || self.sink.may_begin()
    }
}

/// Keeps a sink, and tells it nothing.
struct Nobody(#[expect(dead_code, reason = "it is only kept")] Arc<dyn AttemptSink>);

impl AttemptSink for Nobody {
    fn report(&self, _: Report) {}

    fn may_begin(&self) -> bool {
        true
    }
}

struct Deaf;

impl Carrier for Deaf {
    fn signal(&self, _: Signal) {}
}

/// A carrier that passes something else on.
struct Bent {
    carrier: Arc<dyn Carrier>,
    fault: Fault,
    told: Arc<Told>,
    sink: Option<Arc<dyn AttemptSink>>,
}

impl Bent {
    fn say(&self, report: Report) {
        if let Some(sink) = &self.sink {
            sink.report(report);
        }
    }
}

impl Carrier for Bent {
    fn signal(&self, signal: Signal) {
        let interrupted = || Report::Ended(AttemptEnd::Interrupted { message: None });
        match (self.fault, &signal) {
            (Fault::StopIsIgnored, Signal::Stop { .. })
            | (Fault::PauseIsIgnored, Signal::Pause { .. })
            | (Fault::ResumeIsIgnored, Signal::Resume)
            | (Fault::KillIsIgnored, Signal::Kill) => return,
            (Fault::EndsTwice, Signal::Stop { .. }) => self.say(interrupted()),
            (Fault::KillIsSaidToEnd, Signal::Kill) => self.say(interrupted()),
            (Fault::OnlySaysPaused, Signal::Pause { epoch }) => {
                return self.say(Report::Paused { epoch: *epoch });
            }
            (Fault::PausesOnce, Signal::Pause { .. })
                if self.told.pauses.fetch_add(1, Ordering::AcqRel) > 0 =>
            {
                return;
            }
            (Fault::LosesReasons, Signal::Stop { grace, .. }) => {
                let (reason, grace) = ("".into(), *grace);
                return self.carrier.signal(Signal::Stop { reason, grace });
            }
            _ => {}
        }
        if matches!(signal, Signal::Stop { .. }) {
            let earlier = self.told.stops.fetch_add(1, Ordering::AcqRel);
            if earlier > 0 && self.fault == Fault::SecondStopEndsAgain {
                self.say(interrupted());
            }
        }
        self.carrier.signal(signal);
    }
}

/// One thread for all, which nobody replaces.
struct OneAtATime(Mutex<Sender<(Launch, Arc<Control>)>>);

impl OneAtATime {
    fn new() -> Self {
        let (push, jobs) = channel::<(Launch, Arc<Control>)>();
        thread::spawn(move || {
            for (launch, control) in jobs {
                carry(launch, &control);
            }
        });
        Self(Mutex::new(push))
    }
}

/// A new thread for each launch, which stays for ever.
struct KeepsThreads;

fn carry(launch: Launch, control: &Arc<Control>) {
    launch.sink.report(Report::Launched);
    if let Target::Function(body) = &launch.target {
        let context = TaskContext::new(&launch, Arc::clone(control));
        let end = run_body(body, &context, control, launch.args);
        launch.sink.report(Report::Ended(end));
    }
}

struct Plain(Arc<Control>);

impl Carrier for Plain {
    fn signal(&self, signal: Signal) {
        self.0.signal(signal);
    }
}

const NOTHING: Abilities = Abilities { hard_stop: false, isolation: false };

impl Executor for OneAtATime {
    fn name(&self) -> &'static str {
        "one at a time"
    }

    fn abilities(&self) -> Abilities {
        NOTHING
    }

    fn check(&self, target: &Target) -> Result<(), UnsupportedTarget> {
        ThreadExecutor::new().check(target)
    }

    fn launch(&self, launch: Launch) -> Arc<dyn Carrier> {
        let control = Arc::new(Control::default());
        self.0.lock().unwrap().send((launch, Arc::clone(&control))).unwrap();
        Arc::new(Plain(control))
    }
}

impl Executor for KeepsThreads {
    fn name(&self) -> &'static str {
        "keeps threads"
    }

    fn abilities(&self) -> Abilities {
        NOTHING
    }

    fn check(&self, target: &Target) -> Result<(), UnsupportedTarget> {
        ThreadExecutor::new().check(target)
    }

    fn launch(&self, launch: Launch) -> Arc<dyn Carrier> {
        let control = Arc::new(Control::default());
        let carried = Arc::clone(&control);
        thread::spawn(move || {
            carry(launch, &carried);
            loop {
                thread::park();
            }
        });
        Arc::new(Plain(control))
    }
}
