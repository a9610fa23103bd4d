//! Pages, filters and counts.

use chongming_core::store::{Count, Now, TaskFilter, TaskQuery, TaskStore};
use chongming_core::{BucketSet, Status, StatusSet, TaskSnapshot};

use crate::breach::{Outcome, present, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    MINUTE, accepted, at, create, finds, held, ids, incarnation, node, now, save, stored, task,
    task_in,
};

pub(crate) fn all() -> TaskFilter {
    TaskFilter::default()
}

pub(crate) fn in_states(statuses: &[Status]) -> TaskFilter {
    TaskFilter { statuses: Some(statuses.iter().copied().collect()), ..all() }
}

/// Creates the tasks one by one.
pub(crate) fn fill(store: &dyn TaskStore, tasks: &[TaskSnapshot]) -> Outcome {
    tasks.iter().try_for_each(|task| accepted(store, &[create(task, &[])]))
}

/// Creates tasks named by the letters, each changed by `change`.
pub(crate) fn fill_with(
    store: &dyn TaskStore,
    letters: &str,
    change: impl Fn(char, &mut TaskSnapshot),
) -> Outcome {
    for letter in letters.chars() {
        let mut task = task(&letter.to_string())?;
        change(letter, &mut task);
        fill(store, &[task])?;
    }
    Ok(())
}

pub(crate) fn by_status(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (i, status) in (0..).zip(Status::ALL) {
        fill(&*store, &[task_in(&format!("{status}-{i}"), status, i)?])?;
    }
    fill(&*store, &[task_in("running-again", Status::Running, 1)?])?;
    for (i, status) in (0..15_u64).zip(Status::ALL) {
        let id = format!("{status}-{i}");
        let expected = match status {
            Status::Running => vec!["running-again", &id],
            _ => vec![&*id],
        };
        finds(&*store, in_states(&[status]), &expected)?;
    }
    finds(
        &*store,
        in_states(&[Status::Pending, Status::Running, Status::Failed]),
        &["running-again", "failed-10", "running-5", "pending-0"],
    )?;
    finds(
        &*store,
        in_states(&[Status::Queued, Status::Succeeded, Status::Lost]),
        &["lost-14", "succeeded-9", "queued-2"],
    )?;
    same("unfinished tasks", ids(&*store, unfinished())?.len(), 10)?;
    same("tasks in any state", ids(&*store, in_states(&Status::ALL))?.len(), 16)
}

fn unfinished() -> TaskFilter {
    TaskFilter { statuses: Some(StatusSet::unfinished()), ..all() }
}

pub(crate) fn by_status_as_it_changes(data: &dyn Data) -> Outcome {
    let store = data.connect();
    fill_with(&*store, "abc", |_, _| ())?;
    let b = task_in("b", Status::Succeeded, 1)?;
    accepted(&*store, &[save(&b, 0)])?;
    finds(&*store, unfinished(), &["c", "a"])?;
    finds(&*store, in_states(&[Status::Succeeded]), &["b"])?;
    accepted(&*store, &[save(&task_in("a", Status::Running, 1)?, 0)])?;
    finds(&*store, in_states(&[Status::Running]), &["a"])?;
    finds(&*store, in_states(&[Status::Pending]), &["c"])
}

pub(crate) fn empty_sets_match_nothing(data: &dyn Data) -> Outcome {
    let store = data.connect();
    fill_with(&*store, "ab", |_, task| task.bucket = Some(0))?;
    finds(&*store, in_states(&[]), &[])?;
    finds(&*store, TaskFilter { buckets: Some(BucketSet::default()), ..all() }, &[])?;
    same("counts in no state", store.count(&in_states(&[]))?, vec![])
}

pub(crate) fn by_bucket(data: &dyn Data) -> Outcome {
    let store = data.connect();
    fill_with(&*store, "abcdefg", |letter, task| {
        task.bucket = match letter {
            'a' | 'd' => Some(0),
            'b' | 'e' => Some(7),
            'c' => Some(63),
            'f' => Some(1_048_575),
            _ => None,
        };
    })?;
    let buckets =
        |set: &[u32]| TaskFilter { buckets: Some(set.iter().copied().collect()), ..all() };
    finds(&*store, buckets(&[0]), &["d", "a"])?;
    finds(&*store, buckets(&[7, 63]), &["e", "c", "b"])?;
    finds(&*store, buckets(&[1_048_575]), &["f"])?;
    finds(&*store, buckets(&[5]), &[])?;
    let every: Vec<u32> = (0..2000).collect();
    finds(&*store, buckets(&every), &["e", "d", "c", "b", "a"])?;
    let waiting = TaskFilter { statuses: unfinished().statuses, ..buckets(&[7, 63]) };
    finds(&*store, waiting, &["e", "c", "b"])
}

pub(crate) fn by_tag(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let tags = |letter| -> &[&str] {
        match letter {
            'a' => &["gpu"],
            'b' => &["gpu", "io"],
            'c' => &["gpu2", "xgpu", "gp"],
            'd' => &["a", "b"],
            'e' => &["say \"gpu\"", "50%", "ünï"],
            _ => &[],
        }
    };
    fill_with(&*store, "abcdef", |letter, task| {
        task.tags = tags(letter).iter().map(|tag| (*tag).into()).collect();
    })?;
    let tagged = |tags: &[&str]| TaskFilter {
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        ..all()
    };
    finds(&*store, tagged(&["gpu"]), &["b", "a"])?;
    finds(&*store, tagged(&["gpu", "io"]), &["b"])?;
    finds(&*store, tagged(&["io", "io"]), &["b"])?;
    finds(&*store, tagged(&["gpu", "none"]), &[])?;
    for no_tag in [",", "\",\"", "", "%", "g_u", "GPU", "gpu\"", "["] {
        finds(&*store, tagged(&[no_tag]), &[])?;
    }
    finds(&*store, tagged(&["say \"gpu\"", "ünï", "50%"]), &["e"])
}

pub(crate) fn by_name_and_owner(data: &dyn Data) -> Outcome {
    let store = data.connect();
    fill_with(&*store, "abcd", |letter, task| match letter {
        'a' | 'c' => task.name = "load".into(),
        'b' => task.owner = "owner-2".into(),
        _ => {}
    })?;
    let named = |name: &str| TaskFilter { name: Some(name.into()), ..all() };
    let owned = |owner: &str| TaskFilter { owner: Some(owner.into()), ..all() };
    finds(&*store, named("load"), &["c", "a"])?;
    finds(&*store, named("loa"), &[])?;
    finds(&*store, named("LOAD"), &[])?;
    finds(&*store, owned("owner-2"), &["b"])?;
    finds(&*store, owned("owner-1"), &["d", "c", "a"])?;
    finds(&*store, owned("owner"), &[])
}

pub(crate) fn by_supervisor(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let held = [
        held("a", Status::Running, "life-1")?,
        held("b", Status::Running, "life-2")?,
        task("c")?,
        held("d", Status::Queued, "life-1")?,
    ];
    fill(&*store, &held)?;
    let by = |holder| -> Outcome<_> {
        Ok(TaskFilter { supervisor: Some(incarnation(holder)?), ..all() })
    };
    finds(&*store, by("life-1")?, &["d", "a"])?;
    finds(&*store, by("life-2")?, &["b"])?;
    finds(&*store, by("life-3")?, &[])
}

pub(crate) fn by_lease(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for holder in ["early", "late", "retired"] {
        store.beat(&node(holder, holder, at(0))?, MINUTE, now(0))?;
    }
    store.beat(&node("late", "late", at(0))?, MINUTE, now(100))?;
    store.retire(&incarnation("retired")?, now(1))?;
    let tasks = [
        held("a", Status::Running, "early")?,
        held("b", Status::Running, "late")?,
        held("c", Status::Running, "retired")?,
        held("d", Status::Running, "no-row")?,
        task("e")?,
    ];
    fill(&*store, &tasks)?;
    let lease = |expired, time| TaskFilter { lease_expired: Some((expired, now(time))), ..all() };
    finds(&*store, lease(true, 30), &["e", "d", "c"])?;
    finds(&*store, lease(false, 30), &["b", "a"])?;
    finds(&*store, lease(false, 59), &["b", "a"])?;
    finds(&*store, lease(true, 60), &["e", "d", "c", "a"])?;
    finds(&*store, lease(false, 60), &["b"])?;
    finds(&*store, lease(false, 160), &[])?;
    let running = |expired| TaskFilter {
        statuses: in_states(&[Status::Running]).statuses,
        ..lease(expired, 60)
    };
    finds(&*store, running(true), &["d", "c", "a"])?;
    finds(&*store, running(false), &["b"])?;
    let counts = store.count(&running(true))?;
    same("counts by lease", counts, vec![Count { bucket: None, status: Status::Running, tasks: 3 }])
}

pub(crate) fn by_time_without_change(data: &dyn Data) -> Outcome {
    let store = data.connect();
    fill_with(&*store, "abc", |letter, task| {
        task.updated_at = at(if letter == 'b' { 20 } else { 10 });
    })?;
    let since = |time| TaskFilter { unchanged_since: Some(at(time)), ..all() };
    finds(&*store, since(10), &[])?;
    finds(&*store, since(11), &["c", "a"])?;
    finds(&*store, since(21), &["c", "b", "a"])
}

pub(crate) fn by_text(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let labels = |letter| match letter {
        'a' => Some("Nightly load"),
        'b' => Some("50% of_all"),
        'c' => Some("夜间 load"),
        _ => None,
    };
    fill_with(&*store, "abcd", |letter, task| task.label = labels(letter).map(Into::into))?;
    fill(&*store, &[task("run-7:load")?])?;
    let text = |text: &str| TaskFilter { text: Some(text.into()), ..all() };
    finds(&*store, text("load"), &["run-7:load", "c", "a"])?;
    finds(&*store, text("LOAD"), &[])?;
    finds(&*store, text("%"), &["b"])?;
    finds(&*store, text("_"), &["b"])?;
    finds(&*store, text("夜"), &["c"])?;
    finds(&*store, text("n-7:"), &["run-7:load"])?;
    finds(&*store, text("\\"), &[])
}

pub(crate) fn conditions_add_up(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, name, bucket, status) in [
        ("a", "load", Some(1), Status::Running),
        ("b", "load", Some(2), Status::Running),
        ("c", "load", Some(1), Status::Succeeded),
        ("d", "sync", Some(1), Status::Running),
        ("e", "load", None, Status::Running),
        ("f", "load", Some(1), Status::Queued),
    ] {
        let mut task = task_in(id, status, 1)?;
        (task.name, task.bucket) = (name.into(), bucket);
        task.tags = ["io".into()].into();
        fill(&*store, &[task])?;
    }
    let filter = TaskFilter {
        statuses: Some([Status::Running, Status::Queued].into_iter().collect()),
        buckets: Some(BucketSet::from_iter([1])),
        tags: vec!["io".into()],
        name: Some("load".into()),
        owner: Some("owner-1".into()),
        unchanged_since: Some(at(1)),
        lease_expired: Some((true, now(0))),
        ..all()
    };
    finds(&*store, filter.clone(), &["f", "a"])?;
    let with_text = TaskFilter { text: Some("f".into()), ..filter };
    finds(&*store, with_text, &["f"])
}

pub(crate) fn counts_by_bucket_and_status(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (id, bucket, status) in [
        ("a", Some(1), Status::Running),
        ("b", Some(1), Status::Running),
        ("c", Some(1), Status::Succeeded),
        ("d", None, Status::Running),
        ("e", Some(2), Status::Queued),
    ] {
        let mut task = task_in(id, status, 1)?;
        task.bucket = bucket;
        fill(&*store, &[task])?;
    }
    let counted = |filter| -> Outcome<_> {
        let mut counts: Vec<_> = store.count(&filter)?;
        counts.sort_by_key(|count| (count.bucket, count.status));
        Ok(counts)
    };
    let count = |bucket, status, tasks| Count { bucket, status, tasks };
    let (running, queued) = (Status::Running, Status::Queued);
    let open = vec![count(None, running, 1), count(Some(1), running, 2), count(Some(2), queued, 1)];
    same("counts of unfinished tasks", counted(unfinished())?, open.clone())?;
    let mut every = open;
    every.insert(2, count(Some(1), Status::Succeeded, 1));
    same("counts of all tasks", counted(all())?, every)?;
    let bucket = TaskFilter { buckets: Some(BucketSet::from_iter([2])), ..all() };
    same("counts of a bucket", counted(bucket)?, vec![count(Some(2), queued, 1)])
}

pub(crate) fn lease_is_its_holders(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let tasks = [held("a", Status::Running, "life-1")?, held("b", Status::Queued, "no-row")?];
    fill(&*store, &tasks)?;
    let [first, second] = &tasks;
    same("a lease without a node row", stored(&*store, first)?.lease_until, None)?;
    for time in [0, 100] {
        store.beat(&node("life-1", "owner-1", at(0))?, MINUTE, now(time))?;
        same("the lease", stored(&*store, first)?.lease_until, Some(at(time + 60)))?;
    }
    same("another holder's lease", stored(&*store, second)?.lease_until, None)?;
    let page =
        store.query(&TaskQuery { filter: in_states(&[Status::Running]), after: None, limit: 5 })?;
    let listed = present("the listed task", page.tasks.into_iter().next())?;
    same("the listed task", &listed, &stored(&*store, first)?)
}

pub(crate) fn store_clock_judges_leases(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let hour = std::time::Duration::from_secs(3600);
    for holder in ["living", "retired"] {
        store.beat(&node(holder, holder, at(0))?, hour, Now::Store)?;
    }
    store.retire(&incarnation("retired")?, Now::Store)?;
    let tasks = [held("a", Status::Running, "living")?, held("b", Status::Running, "retired")?];
    fill(&*store, &tasks)?;
    let lease = |expired, now| TaskFilter { lease_expired: Some((expired, now)), ..all() };
    finds(&*store, lease(true, Now::Store), &["b"])?;
    finds(&*store, lease(false, Now::Store), &["a"])?;
    // The same question at a time that somebody gives.
    finds(&*store, lease(true, now(1_000_000_000)), &["b", "a"])
}
