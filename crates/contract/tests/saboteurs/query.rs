use std::time::Duration;

use chongming_core::StatusSet;
use chongming_core::store::*;

use crate::store::clock_at;

saboteurs! {
    by_status / ignores_states: query = |store, query| {
        store.filtered(query, |filter| filter.statuses = None)
    };
    by_status_as_it_changes / keeps_an_old_index: query = |store, query| {
        let mut page = store.filtered(query, |filter| filter.statuses = None)?;
        let entries = store.notes.entries();
        page.tasks.retain(|task| {
            entries.iter().any(|entry| match entry {
                Entry::Create { snapshot, .. } if snapshot.id == task.id => {
                    query.filter.statuses.is_none_or(|set| set.contains(snapshot.status()))
                }
                _ => false,
            })
        });
        Ok(page)
    };
    empty_sets_match_nothing / takes_no_state_for_any: query = |store, query| {
        store.filtered(query, |filter| {
            filter.statuses = filter.statuses.filter(|set| *set != StatusSet::EMPTY);
        })
    };
    empty_sets_match_nothing / takes_no_bucket_for_any: query = |store, query| {
        store.filtered(query, |filter| {
            filter.buckets = filter.buckets.take().filter(|set| !set.is_empty());
        })
    };
    by_bucket / ignores_buckets: query = |store, query| {
        store.filtered(query, |filter| filter.buckets = None)
    };
    by_tag / one_tag_is_enough: query = |store, query| {
        store.filtered(query, |filter| filter.tags.truncate(1))
    };
    by_name_and_owner / ignores_names: query = |store, query| {
        store.filtered(query, |filter| filter.name = None)
    };
    by_name_and_owner / ignores_owners: query = |store, query| {
        store.filtered(query, |filter| filter.owner = None)
    };
    by_supervisor / ignores_holders: query = |store, query| {
        store.filtered(query, |filter| filter.supervisor = None)
    };
    by_lease / takes_the_dead_for_living: query = |store, query| {
        store.filtered(query, |filter| {
            filter.lease_expired = filter.lease_expired.map(|(expired, now)| (!expired, now));
        })
    };
    by_time_without_change / includes_the_time: query = |store, query| {
        store.filtered(query, |filter| {
            let later = filter.unchanged_since.map(|time| time.after(Duration::from_micros(1)));
            filter.unchanged_since = later;
        })
    };
    by_text / ignores_text: query = |store, query| {
        store.filtered(query, |filter| filter.text = None)
    };
    by_text / knows_no_capitals: query = |store, query| {
        store.filtered(query, |filter| {
            filter.text = filter.text.take().map(|text| text.to_lowercase().into());
        })
    };
    conditions_add_up / states_are_condition_enough: query = |store, query| {
        store.filtered(query, |filter| {
            let statuses = filter.statuses;
            *filter = TaskFilter { statuses, ..TaskFilter::default() };
        })
    };
    counts_by_bucket_and_status / ignores_the_filter: count = |store, _| {
        store.memory.count(&TaskFilter::default())
    };
    counts_by_bucket_and_status / counts_without_buckets: count = |store, filter| {
        let mut counts = store.memory.count(filter)?;
        counts.iter_mut().for_each(|count| count.bucket = None);
        Ok(counts)
    };
    lease_is_its_holders / lists_no_lease: query = |store, query| {
        let mut page = store.memory.query(query)?;
        page.tasks.iter_mut().for_each(|task| task.lease_until = None);
        Ok(page)
    };
    store_clock_judges_leases / has_a_clock_that_stands: query = |store, query| {
        store.filtered(query, |filter| {
            let lease = filter.lease_expired;
            filter.lease_expired = lease.map(|(expired, now)| (expired, clock_at(0, now)));
        })
    };
}
