//! The one list of clauses of the store contract. From it come the table, the tests, and (through dead-code
//! warnings) the proof that no case was forgotten.

use super::cases;
use super::fixture::Data;
use crate::breach::Breach;
use crate::clause::{Case, Clause};

/// Hands all clauses to another macro of this crate, behind what it was given.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_clause {
    ($then:ident $($given:tt)*) => {
        $crate::$then! {
            [$($given)*]
            create {
                reads_back:
                    "A created task reads back as it was written.",
                    "everything else is told from what is stored";
                brings_its_trail:
                    "A create stores the audit rows that it brings.",
                    "a state and its rows land together";
                leaves_side_channel:
                    "A create writes neither lease nor progress nor heartbeat.",
                    "they belong to beat and touch";
                taken_id_is_refused:
                    "A create of an id that exists is `Exists` and changes nothing.",
                    "a task's id is its own for ever";
                taken_in_the_same_batch:
                    "An id created earlier in the same batch is taken.",
                    "entries are applied in order";
                unknown_is_nothing:
                    "A task that nobody created is nothing, not an error.",
                    "callers ask before they know";
            }
            save {
                moves_the_task:
                    "A save with the stored version stores state and audit row.",
                    "this is how every transition is written";
                writes_every_field:
                    "A save writes every field that is not fixed or a touch's.",
                    "the snapshot is the truth of its version";
                clears_fields:
                    "A save clears what the snapshot does not have.",
                    "a failure of an earlier attempt must go";
                leaves_what_submission_fixed:
                    "A save leaves name, bucket, bucket key and created_at.",
                    "they are recorded once and never recomputed";
                leaves_side_channel:
                    "A save never touches progress or heartbeat.",
                    "the writer of a save does not know the latest";
                leaves_the_lease:
                    "A save never writes the lease.",
                    "liveness is the node row's alone";
                other_version_is_a_conflict:
                    "A save with another version than the stored one is a `Conflict` and changes nothing.",
                    "there is one writer for each task, and it must learn of a second";
                any_larger_version_will_do:
                    "A save may raise the version by more than one.",
                    "waiting transitions are written as one";
                version_must_grow:
                    "A save that does not raise the version is `NotNewer`.",
                    "versions are monotonic";
                unknown_is_not_found:
                    "A save of an unknown task is `NotFound` and creates nothing.",
                    "a pruned task must not come back";
                first_reason_is_told:
                    "The reasons to refuse a save are tried in their order.",
                    "a caller decides by the reason";
            }
            touch {
                changes_nothing_else:
                    "A touch moves neither version nor updated_at.",
                    "it is no change of state";
                leaves_what_it_does_not_name:
                    "A touch leaves what it does not name.",
                    "heartbeat and progress come from different hands";
                replaces_progress_whole:
                    "A progress replaces the earlier one, absent parts included.",
                    "a total that no longer holds must go";
                needs_no_version:
                    "A touch works whatever the version, in one batch with saves.",
                    "it must not race with transitions";
                unknown_is_not_found:
                    "A touch of an unknown task is `NotFound` and creates nothing.",
                    "a pruned task must not come back";
            }
            trail {
                repeated_row_is_skipped:
                    "An audit row whose task and version exist is skipped.",
                    "a repeated append is a no-op, never a second truth";
                ascends_whatever_came_first:
                    "The trail is read by ascending version.",
                    "wall clocks step; versions do not";
                refused_save_leaves_no_row:
                    "A refused save leaves no audit row.",
                    "a row without its state would be a lie";
                is_read_in_parts:
                    "History gives at most `limit` rows above `after`.",
                    "a trail may be long";
                belongs_to_one_task:
                    "History gives rows of the one task only.",
                    "versions are a task's own";
            }
            batch {
                one_result_each:
                    "Each entry has its result, in order; a refused one affects no other.",
                    "independent tasks share a transaction";
                follows_one_task:
                    "Entries of one task are applied in order.",
                    "its transitions may wait together";
                may_be_empty:
                    "An empty batch is no error.",
                    "a writer need not look";
                may_be_large:
                    "A batch of thousands is written.",
                    "group commit takes all that waits";
                what_json_cannot_say_stops_all:
                    "An entry that JSON cannot express makes the call `Invalid` before anything is written.",
                    "a store must not turn NaN into something else in silence";
                refused_entry_leaves_nothing:
                    "A refused entry leaves neither state nor row, also between accepted ones of its task.",
                    "each entry lands whole or not at all";
            }
            paging {
                newest_created_first:
                    "Pages list the newest created first.",
                    "people look at the newest";
                last_page_says_so:
                    "Only the last page has no cursor.",
                    "an extra empty page would be a lie, a missing one a loss";
                order_outlasts_changes:
                    "Following cursors visits each task once while rows change.",
                    "a listing must neither miss nor repeat";
                filtered_pages_outlast_changes:
                    "Filtered pages list what matches throughout exactly once while rows come and go.",
                    "tasks change all the time, most of all those that people look at";
                cursor_outlasts_its_task:
                    "A cursor is good when the task that it stands at is gone.",
                    "prune runs beside a listing";
                bad_requests_are_invalid:
                    "A cursor that is not the store's, and a page of nothing, are `Invalid`.",
                    "garbage must not read as the first page";
            }
            query {
                by_status:
                    "The filter by states finds exactly those.",
                    "it is the most common question";
                by_status_as_it_changes:
                    "The filter by states follows saves.",
                    "an index must not be stale";
                empty_sets_match_nothing:
                    "A filter by no state or no bucket matches nothing.",
                    "no condition is another thing";
                by_bucket:
                    "The filter by buckets finds exactly those; a task without one is in none.",
                    "a node asks for its share";
                by_tag:
                    "The filter by tags wants all of them, whole.",
                    "tags are words, not patterns";
                by_name_and_owner:
                    "The filters by name and owner compare whole texts.",
                    "names are words, not patterns";
                by_supervisor:
                    "The filter by holder finds its tasks only.",
                    "a holder re-reads its tasks after a lapse";
                by_lease:
                    "The filter by lease judges the holder's row; no holder or no row is expired.",
                    "recovery looks for the dead";
                by_time_without_change:
                    "The filter by time finds tasks unchanged since before it.",
                    "doctor looks for the stuck";
                by_text:
                    "The filter by text looks in id and label, letter for letter.",
                    "a percent sign is a percent sign";
                conditions_add_up:
                    "All conditions of a filter must hold.",
                    "each narrows the answer";
                counts_by_bucket_and_status:
                    "Counts are exact, by bucket and status, under the same filter.",
                    "stats and buckets add them up";
                lease_is_its_holders:
                    "A task's lease is read through its holder's row.",
                    "one write renews all tasks of a node";
                store_clock_judges_leases:
                    "With `Now::Store` the filter by lease is judged by the store's clock.",
                    "whoever asks may have another clock";
            }
            command {
                reads_back:
                    "Commands read back as handed in, oldest first.",
                    "the issuer waits for its receipt";
                same_id_changes_nothing:
                    "Handing in an id again changes nothing.",
                    "an issuer may repeat after a fault";
                only_its_holder_claims:
                    "Only the named holder claims a command.",
                    "no other node can carry it out";
                oldest_first:
                    "Claims give the oldest, up to the limit.",
                    "a resume after a pause must stay one";
                claim_is_leased:
                    "A claim lasts its lease, and ends with it.",
                    "a claimer may crash";
                receipt_ends_it:
                    "The first receipt stays and ends the command.",
                    "what happened, happened once";
                every_receipt_reads_back:
                    "Receipts of every kind read back.",
                    "the issuer decides by them";
                release_gives_it_back:
                    "A released command can be claimed at once, and is not completed.",
                    "not mine means somebody else's";
                unknown_is_false:
                    "Completing or releasing an unknown command is `false`.",
                    "it may have been pruned";
                belongs_to_one_task:
                    "A task's commands are its own.",
                    "a receipt must not be mistaken";
                store_clock_decides:
                    "With `Now::Store` claims and receipts carry the store's time.",
                    "claims of skewed clocks would end too early or never";
            }
            node {
                reads_back:
                    "Node rows read back, latest start first.",
                    "they are the last known declaration";
                beat_renews:
                    "A beat sets the lease to ttl from now, and says whether it had lapsed.",
                    "a late holder must re-read its tasks";
                beat_updates_the_declaration:
                    "A beat writes the declaration, one row for each incarnation.",
                    "the latest declaration counts";
                beat_is_one_nodes:
                    "A beat renews no other node's lease.",
                    "each life is its own";
                expires_at_its_end:
                    "A lease has expired from its end on.",
                    "both sides must agree on the moment";
                retire_ends_the_lease:
                    "Retiring ends the lease at once, never prolongs it, and keeps the row.",
                    "a clean end frees the tasks";
                store_clock_decides:
                    "`Now::Store` is one clock for beats and judgements.",
                    "skewed node clocks kill no healthy task";
                guard_holds_while_the_lease_lasts:
                    "A guarded save is `LeaseHeld` until the lease's end.",
                    "a living holder keeps its task";
                guard_sees_a_renewal:
                    "A guarded save sees a renewal made after the look.",
                    "guard and version are judged together";
                guard_asks_the_stored_holder:
                    "The guard asks the stored holder, not the new one.",
                    "the new one is who wants it";
                guard_lets_through_without_holder:
                    "No holder, or one without a row, is expired.",
                    "an orphan must be reachable";
                no_guard_no_question:
                    "A save without guard does not ask for leases.",
                    "the holder itself writes so";
                guard_is_its_entrys:
                    "A guard that holds refuses its entry only.",
                    "independent tasks share a transaction";
                guard_sees_the_batch_before_it:
                    "A guard sees what entries before it in the batch have written.",
                    "entries of one task are applied in order";
            }
            facts {
                first_writer_wins:
                    "The first pin stays, and everybody is told it.",
                    "one bucket count for each store";
                reading_records_nothing:
                    "Reading a fact records nothing.",
                    "an observer changes nothing";
                are_apart:
                    "Facts are apart, letter for letter.",
                    "one must not answer for another";
                keep_their_text:
                    "Facts keep their text, whatever it is.",
                    "they are compared";
            }
            prune {
                only_ended_tasks:
                    "Prune never deletes an unfinished task.",
                    "it is still somebody's work";
                only_before_the_time:
                    "Prune deletes what ended before the time, not at it.",
                    "an age is an age";
                takes_trail_and_commands:
                    "Prune takes trail and commands along, and only those.",
                    "nothing may be left that nobody can find";
                frees_the_id:
                    "A pruned id can be created anew, with a trail of its own.",
                    "old rows must not haunt it";
                stops_at_its_limit:
                    "Prune deletes at most `limit` tasks in a call.",
                    "no transaction grows without limit";
                dry_run_only_counts:
                    "A dry run counts and deletes nothing.",
                    "people look first";
                nodes_long_dead:
                    "Node rows go when their lease ended before the time, but for each owner's latest.",
                    "the last declaration stays known";
                nodes_that_live_stay:
                    "A node whose lease lasts is never pruned.",
                    "its tasks would be taken";
                nodes_named_by_unfinished_tasks_stay:
                    "A node that an unfinished task names is never pruned.",
                    "the task's holder must stay known";
                store_clock_decides:
                    "With `Now::Store` a lease that lasts by the store's clock keeps its node row.",
                    "the age comes from another clock";
            }
            serialization {
                integers:
                    "Integers keep 64 bits, signed and unsigned.",
                    "an id rounded to a float is another id";
                floats:
                    "Floats come back to the last bit.",
                    "results are compared";
                strings:
                    "Strings inside values keep NUL, control characters and every letter.",
                    "they are the task's, not ours";
                shapes:
                    "Null, empty lists and empty maps stay what they are.",
                    "null is a result, no result is none";
                deepest_nesting:
                    "A value nested 128 deep is kept.",
                    "that is what the product promises";
                longest_ids:
                    "Ids of 255 bytes and of odd letters are kept and told apart.",
                    "that is what the product allows";
                texts:
                    "Texts are kept, empty ones and control characters included.",
                    "an empty label is not no label";
                times:
                    "Times are kept to the microsecond, before 1970 too.",
                    "records are compared";
                numbers:
                    "Numbers are kept up to their limits.",
                    "a store must not narrow them";
                every_word:
                    "Every state, trigger and failure kind is kept.",
                    "one forgotten word is one unreadable task";
                command_texts:
                    "Commands keep their texts and longest ids.",
                    "people read them";
                node_texts:
                    "Node rows keep their texts and longest ids.",
                    "logs are found by them";
            }
            concurrency {
                one_connection_sees_another:
                    "What one connection wrote, another reads and may build on.",
                    "processes share one store";
                one_creator_wins:
                    "Of creates of one id at once, exactly one wins.",
                    "an id names one task";
                one_saver_wins:
                    "Of saves with one expectation at once, exactly one wins, with its row.",
                    "one writer for each task";
                no_increment_is_lost:
                    "Read, change and save in a loop loses no update.",
                    "compare and set is what it says";
                every_batch_lands:
                    "Batches of several connections all land.",
                    "a busy store is not an error";
                no_command_goes_twice:
                    "No command goes to two claimers, and all are claimed.",
                    "a stop is carried out once";
                one_pin_wins:
                    "Of pins at once one wins, and all are told the same.",
                    "one bucket count for each store";
                one_adopter_wins:
                    "Of guarded saves of an orphan at once, exactly one wins.",
                    "two nodes may recover the same task";
                touches_and_saves_both_land:
                    "Touches and saves of one task at once lose neither.",
                    "they come from different threads";
                trail_is_never_behind:
                    "A reader never sees a state without its row.",
                    "a state and its rows land together";
                vanished_claimer_is_replaced:
                    "Claims of one who vanished end with their lease, and go to exactly one other.",
                    "a holder may be killed between claim and receipt";
            }
            close {
                later_calls_are_refused:
                    "After close every call is `Closed`.",
                    "nothing may seem to work";
                may_come_twice:
                    "A second close does nothing.",
                    "owners may overlap";
                keeps_what_was_written:
                    "What was written is there when the data is opened again.",
                    "that is what a store is for";
                is_one_stores_own:
                    "Closing one store leaves others on the same data open.",
                    "each process closes its own";
                is_not_needed:
                    "What was written is there for others, also when the store was never closed.",
                    "a process may be killed";
            }
        }
    };
}

crate::__each_clause!(__clause_table fn(&dyn Data) -> Result<(), Breach>);

/// One `#[test]` for each clause, in a module for each group, on data of this [`Fixture`](crate::Fixture).
///
/// Put it in a module of its own: `mod on_disk { use super::*; contract_tests!(OnDisk); }`.
#[macro_export]
macro_rules! contract_tests {
    ($fixture:expr) => {
        $crate::__each_clause!(__clause_tests $crate::assert_clause, $fixture);
    };
}
