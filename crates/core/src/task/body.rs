//! Bodies: functions, closures and async functions in one shape, and how one is run to its end.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::executor::AttemptEnd;
use crate::failure::{Failure, FailureKind};
use crate::task::context::TaskContext;
use crate::task::control::Control;
use crate::task::error::{Cause, TaskError};
use crate::text::clean;
use crate::value::{FromValue, IntoValue, Value};

/// A task's code, its arguments and result as values.
pub type Body = Arc<dyn Fn(&TaskContext, Value) -> Result<Value, TaskError> + Send + Sync>;

/// A future that an async body leaves behind.
pub type BodyFuture = Pin<Box<dyn Future<Output = Result<Value, TaskError>> + Send>>;

/// Drives such a future to its end on the calling thread.
pub type BlockOn = Arc<dyn Fn(BodyFuture) -> Result<Value, TaskError> + Send + Sync>;

/// Wraps a function with typed arguments and result.
pub(crate) fn function<A, T, F>(f: F) -> Body
where
    A: FromValue,
    T: IntoValue,
    F: Fn(&TaskContext, A) -> Result<T, TaskError> + Send + Sync + 'static,
{
    Arc::new(move |context, args| {
        let args = A::from_value(args).map_err(|e| TaskError::arguments_invalid(&e))?;
        f(context, args)?.into_value().map_err(|e| TaskError::result_invalid(&e))
    })
}

/// Wraps an async function; `block_on` drives it.
pub(crate) fn future<A, T, F, Fut>(f: F, block_on: BlockOn) -> Body
where
    A: FromValue,
    T: IntoValue,
    F: Fn(TaskContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, TaskError>> + Send + 'static,
{
    Arc::new(move |context, args| {
        let args = A::from_value(args).map_err(|e| TaskError::arguments_invalid(&e))?;
        let running = f(context.clone(), args);
        block_on(Box::pin(async move {
            running.await?.into_value().map_err(|e| TaskError::result_invalid(&e))
        }))
    })
}

/// The default way to drive a future: polls on this thread and parks it in between.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// For executors: runs a body to its end, if it [may begin](crate::AttemptSink::may_begin), and says how it
/// ended. A panic ends here.
pub fn run_body(body: &Body, context: &TaskContext, control: &Control, args: Value) -> AttemptEnd {
    if !context.may_begin() {
        let message =
            Some("the task was taken over, or the controller closed, before its body began".into());
        return AttemptEnd::Interrupted { message };
    }
    let ended = catch_unwind(AssertUnwindSafe(|| body(context, args)));
    let failure = match ended {
        Ok(Ok(value)) => match value.check() {
            Ok(()) => return AttemptEnd::Completed(value),
            Err(error) => match TaskError::result_invalid(&error).0 {
                Cause::Failed(failure) => return AttemptEnd::Failed(failure),
                Cause::Interrupted(reason) => Failure::new(FailureKind::Exception, reason),
            },
        },
        Ok(Err(TaskError(Cause::Interrupted(_)))) if control.stop_was_seen() => {
            return AttemptEnd::Interrupted { message: None };
        }
        Ok(Err(TaskError(Cause::Interrupted(_)))) => Failure::new(
            FailureKind::Exception,
            "it returned an interruption, but nobody asked it to stop",
        ),
        Ok(Err(TaskError(Cause::Failed(failure)))) => failure,
        Err(payload) => {
            let text = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without a message".to_owned());
            Failure::new(FailureKind::Panic, text)
        }
    };
    if control.stop_was_seen() {
        AttemptEnd::Interrupted { message: Some(clean(&failure.message)) }
    } else {
        AttemptEnd::Failed(failure)
    }
}
