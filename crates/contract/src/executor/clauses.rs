//! The one list of clauses of the executor contract.

use super::cases;
use super::stage::Stage;
use crate::breach::Breach;
use crate::clause::{Case, Clause};

/// Hands all clauses to another macro of this crate, behind what it was given.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_executor_clause {
    ($then:ident $($given:tt)*) => {
        $crate::$then! {
            [$($given)*]
            launch {
                runs_its_body_once:
                    "A launch runs its body exactly once.",
                    "what runs twice may be paid twice";
                what_may_not_begin_never_runs:
                    "An attempt whose sink says, when first asked, that it may not begin runs nothing, and ends as `Interrupted`.",
                    "its task was taken over while the program stood still";
                reports_in_order:
                    "An attempt reports `Launched` first and one `Ended` last, and then lets its sink go.",
                    "every conclusion is drawn from the order";
                returns_at_once:
                    "A launch returns while its body runs.",
                    "one thread launches for all";
                carriers_in_order:
                    "Launched at once, each attempt has its own carrier, in order.",
                    "a stop must reach the task that it was meant for";
                holds_up_no_other:
                    "A body that blocks holds up no other.",
                    "a slot that the controller gave is there";
            }
            input {
                arguments_arrive:
                    "The arguments arrive as they were given, to the last bit.",
                    "an id rounded to a float is another id";
                it_knows_its_attempt:
                    "A body is told its task's id, its name and the number of its attempt.",
                    "it may have to know a first try from a second";
                upstream_results_arrive:
                    "The results of upstream nodes arrive under their names.",
                    "this is how results flow in a pipeline";
            }
            result {
                the_value_is_delivered:
                    "A result is delivered as it was returned, 128 levels deep too.",
                    "results are compared and computed with";
                null_is_a_value:
                    "A body that returns null has completed.",
                    "no result is a result";
                an_error_is_an_exception:
                    "An error is a failure of kind `exception` with its message, and retryable.",
                    "the policy decides about a retry by this";
                a_permanent_error_is_not_retryable:
                    "An error that the body marks permanent is not retryable.",
                    "the body knows that a retry is vain";
                a_panic_is_a_failure:
                    "A panic is a failure of kind `panic` with its message, and the executor goes on.",
                    "one wrong task must not end the others";
                what_json_cannot_say_is_invalid:
                    "A result that JSON cannot express is a failure of kind `result_invalid`, not retryable.",
                    "a result is never turned into another in silence";
                arguments_that_do_not_fit_are_permanent:
                    "Arguments of another shape than the body takes fail it, not retryably.",
                    "they will not fit the next time";
                a_crash_harms_nobody:
                    "With isolation, a body that aborts fails as `crashed` and the executor goes on.",
                    "this is what isolation promises";
            }
            telling {
                the_last_progress_is_reported:
                    "Progress is reported whole and in order, the last before the end.",
                    "people watch it";
                a_heartbeat_is_a_sign_of_life:
                    "A heartbeat is reported as activity.",
                    "without it the idle time-out ends a healthy task";
                a_checkpoint_is_a_sign_of_life:
                    "A checkpoint is reported as activity.",
                    "without it the idle time-out ends a healthy task";
                progress_is_no_sign_of_life:
                    "Progress is not reported as activity.",
                    "a loop that reports for ever is stuck all the same";
                its_log_has_its_lines:
                    "What a body logs stands in the attempt's log file, in order, with its level.",
                    "somebody looks for the reason there";
                its_artifacts_are_kept:
                    "A body's artifact folder is the launch's, made on first use.",
                    "somebody looks for the files there";
                without_files_nothing_is_kept:
                    "Without files a body has no artifact folder, and what it logs is dropped.",
                    "a controller may keep nothing";
            }
            stop {
                a_checkpoint_obeys:
                    "A stop ends a body at its next checkpoint, as `Interrupted`.",
                    "a checkpoint is all it takes to be stoppable";
                its_reason_is_told:
                    "The body is told the reason of its stop.",
                    "it may write it down";
                an_early_one_is_kept:
                    "A stop that comes before the body is kept for it.",
                    "a request that was accepted is carried out";
                a_result_before_it_was_seen_counts:
                    "A body that returned without having looked has `Completed`.",
                    "what was done was done";
                an_error_after_it_was_seen_confirms:
                    "A body that fails after it has seen the stop is `Interrupted`, with its error.",
                    "it ended because it was told to";
                a_second_one_changes_nothing:
                    "A second stop, or a pause behind one, changes nothing.",
                    "people press twice";
                late_signals_change_nothing:
                    "Signals to an attempt that has ended are dropped.",
                    "they cross with its end all the time";
            }
            pause {
                any_number_of_times:
                    "Each pause is reported by its number, each resume lets the body go on.",
                    "a pause may be taken more than once";
                a_paused_body_stands_still:
                    "A body whose pause was reported does nothing until it is resumed.",
                    "`paused` must be true";
                it_reaches_into_a_sleep:
                    "A pause, a resume and a stop reach a body that sleeps.",
                    "a sleep is one long checkpoint";
                it_reaches_an_async_body:
                    "A pause, a resume and a stop reach an async body.",
                    "it has checkpoints too";
                a_resume_takes_it_back:
                    "A resume takes back a pause that was not reached.",
                    "this is how a pause is rolled back";
                a_stop_ends_it:
                    "A stop ends a paused body.",
                    "nobody must resume first";
            }
            kill {
                it_ends_a_deaf_body_or_claims_no_end:
                    "A kill ends a body that does not listen; without hard stop no end is claimed.",
                    "nothing is claimed that is not known";
                what_was_given_up_is_replaced:
                    "However many bodies were killed or given up, the next one runs.",
                    "a lost task frees its slot at once";
                it_ends_a_pause:
                    "A kill ends a paused body.",
                    "nobody must resume first";
            }
            target {
                what_it_carries_is_accepted:
                    "A target that it can carry is accepted.",
                    "a submission asks this first";
                what_it_cannot_carry_is_refused:
                    "A target that it cannot carry is refused, with the reason.",
                    "this is told at submission, not at night";
                a_launch_of_it_fails:
                    "Launched all the same, it reports `LaunchFailed` alone, and the executor goes on.",
                    "a mistake of one task is not another's";
            }
            shutdown {
                many_launches_leave_no_threads:
                    "The threads that ran bodies do not grow with the number of launches.",
                    "a node runs for months";
                its_threads_end_with_it:
                    "The threads of an executor that was dropped end.",
                    "a program makes more than one";
                what_still_runs_ends_or_can_be_stopped:
                    "A drop ends what runs; without hard stop, what runs can still be stopped.",
                    "no attempt is without an end";
                a_report_may_drop_it:
                    "A report may drop the executor.",
                    "the last report may end its controller";
            }
        }
    };
}

crate::__each_executor_clause!(__clause_table fn(Stage<'_>) -> Result<(), Breach>);

/// One `#[test]` for each clause, in a module for each group, on executors of this
/// [`Fixture`](crate::executor::Fixture).
///
/// Put it in a module of its own: `mod threads { use super::*; executor_contract_tests!(Threads); }`.
#[macro_export]
macro_rules! executor_contract_tests {
    ($fixture:expr) => {
        $crate::__each_executor_clause!(__clause_tests $crate::executor::assert_clause, $fixture);
    };
}
