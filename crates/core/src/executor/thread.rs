//! The default executor: a pool of threads that grows with what blocks, not with what waits (spec 7).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::executor::{
    Abilities, AttemptEnd, Carrier, Executor, Launch, Report, Signal, Target, UnsupportedTarget,
};
use crate::failure::{Failure, FailureKind};
use crate::linger::linger;
use crate::task::{Control, TaskContext, run_body};

/// How long a backlog may stand before the pool grows.
const GROWTH_TICK: Duration = Duration::from_millis(5);
/// How long a worker waits for work before it goes.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Runs functions on pooled threads. Threads cannot be killed: one that ignores its stop is given up
/// and replaced.
///
/// A few workers take jobs in turn; more are started only while jobs stand in the queue without being
/// taken, so a thousand slots for short tasks need no thousand threads, and a thousand sleeping bodies
/// get them.
pub struct ThreadExecutor {
    pool: Arc<Pool>,
}

struct Pool {
    state: Mutex<State>,
    /// Jobs stand in the queue; to be seen without the lock.
    has_jobs: AtomicBool,
    work: Condvar,
    backlog: Condvar,
    base: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Job>>,
    workers: usize,
    /// Workers that look out for jobs, or sleep.
    idle: usize,
    /// Those of them that sleep.
    asleep: usize,
    /// Workers that were started and have not come for their first job.
    fresh: usize,
    taken: u64,
    has_grower: bool,
    /// The grower looks at the backlog by itself, while there is one.
    is_growing: bool,
    closed: bool,
}

struct Job {
    launch: Mutex<Option<Launch>>,
    control: Arc<Control>,
    stage: AtomicU8,
    pool: Arc<Pool>,
}

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;
const ABANDONED: u8 = 3;

impl Default for ThreadExecutor {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadExecutor {
    /// A pool without threads; they come with the work.
    #[must_use]
    pub fn new() -> Self {
        let base = thread::available_parallelism().map_or(2, usize::from).max(2);
        let (work, backlog) = (Condvar::new(), Condvar::new());
        let (state, has_jobs) = (Mutex::default(), AtomicBool::new(false));
        Self { pool: Arc::new(Pool { state, has_jobs, work, backlog, base }) }
    }
}

impl Drop for ThreadExecutor {
    fn drop(&mut self) {
        self.pool.state().closed = true;
        self.pool.work.notify_all();
        self.pool.backlog.notify_all();
    }
}

impl Executor for ThreadExecutor {
    fn name(&self) -> &'static str {
        "thread"
    }

    fn abilities(&self) -> Abilities {
        Abilities { hard_stop: false, isolation: false }
    }

    fn check(&self, target: &Target) -> Result<(), UnsupportedTarget> {
        functions_only(self.name(), target)
    }

    /// Wakes a worker, unless one is up and looks out: to be woken takes as long as a small commit does.
    fn expect(&self) {
        let state = self.pool.state();
        let is_wanted = state.idle > 0 && state.idle == state.asleep;
        drop(state);
        if is_wanted {
            self.pool.work.notify_one();
        }
    }

    fn launch(&self, launch: Launch) -> Arc<dyn Carrier> {
        let job = Job::new(launch, &self.pool);
        self.pool.push(&[Arc::clone(&job)]);
        job
    }

    fn launch_all(&self, launches: Vec<Launch>) -> Vec<Arc<dyn Carrier>> {
        let jobs: Vec<_> = launches.into_iter().map(|l| Job::new(l, &self.pool)).collect();
        self.pool.push(&jobs);
        jobs.into_iter().map(|job| job as Arc<dyn Carrier>).collect()
    }
}

/// What the executors of this crate can carry.
pub(super) fn functions_only(executor: &str, target: &Target) -> Result<(), UnsupportedTarget> {
    match target {
        Target::Function(_) => Ok(()),
        Target::External(_) => Err(UnsupportedTarget(format!(
            "the {executor} executor runs Rust functions only; use an executor made for this target"
        ))),
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, jobs: &[Arc<Job>]) {
        let mut state = self.state();
        state.queue.extend(jobs.iter().cloned());
        self.has_jobs.store(true, Ordering::Relaxed);
        let unattended = state.queue.len().saturating_sub(state.idle - state.asleep);
        let sleepers = jobs.len().min(unattended).min(state.asleep);
        self.provide(&mut state);
        // A worker that wakes wants the lock.
        drop(state);
        (0..sleepers).for_each(|_| self.work.notify_one());
    }

    /// Sees to it that there are workers for the jobs in the queue, now or soon.
    fn provide(self: &Arc<Self>, state: &mut State) {
        while state.queue.len() > state.idle + state.fresh && state.workers < self.base {
            if !self.start_worker(state) {
                return;
            }
        }
        if state.queue.len() > state.idle + state.fresh && !state.is_growing {
            if state.has_grower {
                self.backlog.notify_one();
            } else {
                let pool = Arc::clone(self);
                state.has_grower = spawn("task-pool-growth", move || pool.grow());
            }
            state.is_growing = state.has_grower;
        }
    }

    fn start_worker(self: &Arc<Self>, state: &mut State) -> bool {
        let pool = Arc::clone(self);
        let started = spawn("task-worker", move || pool.work());
        state.workers += usize::from(started);
        state.fresh += usize::from(started);
        started
    }

    /// Starts more workers while what stood in the queue one tick ago has not been taken.
    fn grow(self: Arc<Self>) {
        let mut state = self.state();
        while !state.closed {
            if state.queue.len() <= state.idle + state.fresh {
                state.is_growing = false;
                state = self.backlog.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let expected = state.taken + state.queue.len() as u64;
            let waited = self.backlog.wait_timeout(state, GROWTH_TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let late = expected.saturating_sub(state.taken).min(state.queue.len() as u64) as usize;
            let coming = state.idle + state.fresh;
            for _ in 0..late.saturating_sub(coming).min(state.workers.max(1)) {
                self.start_worker(&mut state);
            }
        }
    }

    fn work(self: Arc<Self>) {
        self.state().fresh -= 1;
        loop {
            let Some(job) = self.next_job() else { return };
            job.run();
            if job
                .stage
                .compare_exchange(RUNNING, DONE, Ordering::AcqRel, Ordering::Acquire)
                .is_err()
            {
                // Given up while it ran: another worker has this one's place.
                return;
            }
        }
    }

    fn next_job(&self) -> Option<Arc<Job>> {
        let mut state = self.state();
        let mut has_lingered = false;
        loop {
            if let Some(job) = state.queue.pop_front() {
                state.taken += 1;
                if job
                    .stage
                    .compare_exchange(WAITING, RUNNING, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok()
                {
                    return Some(job);
                }
                continue;
            }
            if state.closed {
                state.workers -= 1;
                return None;
            }
            state.idle += 1;
            if !has_lingered {
                self.has_jobs.store(false, Ordering::Relaxed);
                drop(state);
                linger(|| self.has_jobs.load(Ordering::Relaxed));
                state = self.state();
                state.idle -= 1;
                has_lingered = true;
                continue;
            }
            state.asleep += 1;
            let waited = self.work.wait_timeout(state, IDLE_LIMIT);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.asleep -= 1;
            state.idle -= 1;
            has_lingered = false;
            if timeout.timed_out() && state.queue.is_empty() {
                state.workers -= 1;
                return None;
            }
        }
    }
}

/// `false` when the machine has no thread left: the job stays in the queue, for the next one that can.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name(name.into()).spawn(work).is_ok()
}

impl Job {
    fn new(launch: Launch, pool: &Arc<Pool>) -> Arc<Self> {
        Arc::new(Self {
            launch: Mutex::new(Some(launch)),
            control: Arc::default(),
            stage: AtomicU8::new(WAITING),
            pool: Arc::clone(pool),
        })
    }

    fn run(&self) {
        let taken = self.launch.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(launch) = taken else { return };
        if self.control.is_stop_requested() {
            launch.sink.report(Report::Ended(AttemptEnd::Interrupted { message: None }));
            return;
        }
        let Target::Function(body) = &launch.target else {
            let failure = Failure::new(FailureKind::LaunchFailed, "no function to run on a thread");
            launch.sink.report(Report::LaunchFailed(failure));
            return;
        };
        launch.sink.report(Report::Launched);
        let context = TaskContext::new(&launch, Arc::clone(&self.control));
        let end = run_body(body, &context, &self.control, launch.args);
        launch.sink.report(Report::Ended(end));
    }
}

impl Carrier for Job {
    fn signal(&self, signal: Signal) {
        if signal == Signal::Kill {
            let abandon = |from| {
                self.stage
                    .compare_exchange(from, ABANDONED, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok()
            };
            if !abandon(WAITING) && abandon(RUNNING) {
                let mut state = self.pool.state();
                state.workers -= 1;
                self.pool.provide(&mut state);
            }
        }
        self.control.signal(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::AttemptSink;
    use crate::id::TaskId;
    use crate::task::{TaskDefinition, TaskError};
    use crate::value::Value;
    use std::sync::Barrier;
    use std::sync::mpsc::{Receiver, Sender, channel};

    struct Reports(Sender<Report>);

    impl AttemptSink for Reports {
        fn report(&self, report: Report) {
            self.0.send(report).unwrap();
        }

        fn may_begin(&self) -> bool {
            true
        }
    }

    fn launch(
        executor: &ThreadExecutor,
        body: impl Fn(&TaskContext) -> Result<(), TaskError> + Send + Sync + 'static,
    ) -> (Arc<dyn Carrier>, Receiver<Report>) {
        let (send, reports) = channel();
        let definition = TaskDefinition::new("t", move |ctx: &TaskContext, ()| body(ctx));
        let carrier = executor.launch(Launch {
            task_id: TaskId::new("t").unwrap(),
            name: "t".into(),
            attempt: 1,
            target: definition.target,
            args: Value::Null,
            upstream: Arc::default(),
            files: None,
            sink: Arc::new(Reports(send)),
        });
        (carrier, reports)
    }

    fn stop() -> Signal {
        Signal::Stop { reason: "test".into(), grace: Duration::ZERO }
    }

    #[test]
    fn a_hundred_blocking_bodies_run_at_once() {
        let executor = ThreadExecutor::new();
        let all = Arc::new(Barrier::new(100));
        let launched: Vec<_> = (0..100)
            .map(|_| {
                let all = Arc::clone(&all);
                launch(&executor, move |_| {
                    all.wait();
                    Ok(())
                })
            })
            .collect();
        for (_, reports) in launched {
            let reports: Vec<_> = reports.iter().collect();
            let end = Report::Ended(AttemptEnd::Completed(Value::Null));
            assert_eq!(reports, [Report::Launched, end]);
        }
    }

    #[test]
    fn a_panic_is_a_failure_and_the_pool_goes_on() {
        let executor = ThreadExecutor::new();
        for _ in 0..10 {
            let (_, reports) = launch(&executor, |_| panic!("boom"));
            let failure = Failure::new(FailureKind::Panic, "boom");
            assert_eq!(reports.iter().last(), Some(Report::Ended(AttemptEnd::Failed(failure))));
        }
    }

    #[test]
    fn a_checkpoint_obeys_a_stop() {
        let executor = ThreadExecutor::new();
        let (carrier, reports) = launch(&executor, |ctx| ctx.sleep(Duration::MAX));
        assert_eq!(reports.recv(), Ok(Report::Launched));
        carrier.signal(stop());
        let end = Report::Ended(AttemptEnd::Interrupted { message: None });
        assert_eq!(reports.iter().last(), Some(end));
    }

    #[test]
    fn an_abandoned_worker_is_replaced() {
        let executor = ThreadExecutor::new();
        let release = Arc::new(Barrier::new(executor.pool.base + 1));
        let stuck: Vec<_> = (0..executor.pool.base)
            .map(|_| {
                let release = Arc::clone(&release);
                let (carrier, reports) = launch(&executor, move |_| {
                    release.wait();
                    Ok(())
                });
                assert_eq!(reports.recv(), Ok(Report::Launched));
                carrier.signal(Signal::Kill);
                reports
            })
            .collect();
        assert_eq!(executor.pool.state().workers, 0);
        let (_, reports) = launch(&executor, |_| Ok(()));
        let end = Report::Ended(AttemptEnd::Completed(Value::Null));
        assert_eq!(reports.iter().last(), Some(end));
        release.wait();
        for reports in stuck {
            assert!(matches!(reports.iter().last(), Some(Report::Ended(_))));
        }
    }
}
