//! Who goes next (spec 8): slots, bucket limits, resource permits, priority.
//!
//! Waiting tasks stand in *lanes*: one lane for each combination of limits that a task is subject to, so
//! that its head stands for the whole lane. A lane is *ready*, or *parked* at one limit that was full when
//! it was looked at. Only the best parked lane of a limit is looked at again when the limit has room, so a
//! dispatch costs O(log n) however many tasks wait.
//!
//! What keeps that right: where a limit has room and lanes are parked at it, some ready lane under the
//! same limit is better than all of them. It is looked at first; when it leaves or worsens, the best
//! parked lane takes its place.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::scheduler::slab::TaskKey;
use crate::text::Text;

/// The limits of one controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Slots; at least 1.
    pub max_parallel: usize,
    /// Slots for each bucket.
    pub max_parallel_per_bucket: Option<usize>,
    /// Permits for each tag that names a resource.
    pub resources: BTreeMap<Text, usize>,
}

impl Default for Limits {
    /// One slot for each processor, nothing else.
    fn default() -> Self {
        let max_parallel = std::thread::available_parallelism().map_or(1, usize::from);
        Self { max_parallel, max_parallel_per_bucket: None, resources: BTreeMap::new() }
    }
}

/// Order among waiting tasks: higher priority first, then earlier entry into `queued`.
pub(super) type Rank = (Reverse<i32>, u64);

/// Names a lane.
pub(super) type LaneId = usize;
type LimitId = usize;

#[derive(Debug)]
struct Limit {
    what: What,
    capacity: usize,
    used: usize,
    parked: BTreeSet<(Rank, LaneId)>,
}

/// What a limit limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Bucket(u32),
    Resource(Text),
}

#[derive(Debug)]
struct Lane {
    limits: Arc<[LimitId]>,
    waiting: BTreeMap<Rank, TaskKey>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Empty,
    Ready,
    Parked(LimitId),
}

#[derive(Debug)]
pub(super) struct Admission {
    max_parallel: usize,
    used: usize,
    per_bucket: Option<usize>,
    limits: Vec<Limit>,
    buckets: HashMap<u32, LimitId>,
    resources: HashMap<Text, LimitId>,
    lanes: Vec<Lane>,
    lane_of: BTreeMap<Arc<[LimitId]>, LaneId>,
    ready: BTreeSet<(Rank, LaneId)>,
}

impl Admission {
    pub(super) fn new(limits: &Limits) -> Self {
        let permits: Vec<_> = limits
            .resources
            .iter()
            .map(|(name, capacity)| Limit {
                what: What::Resource(name.clone()),
                capacity: *capacity,
                used: 0,
                parked: BTreeSet::new(),
            })
            .collect();
        Self {
            max_parallel: limits.max_parallel.max(1),
            used: 0,
            per_bucket: limits.max_parallel_per_bucket,
            resources: limits.resources.keys().cloned().zip(0..).collect(),
            limits: permits,
            buckets: HashMap::new(),
            lanes: Vec::new(),
            lane_of: BTreeMap::new(),
            ready: BTreeSet::new(),
        }
    }

    /// The lane of a task with this bucket and these tags.
    pub(super) fn lane(&mut self, bucket: Option<u32>, tags: &[Text]) -> LaneId {
        let mut limits: Vec<LimitId> =
            tags.iter().filter_map(|tag| self.resources.get(tag).copied()).collect();
        limits.sort_unstable();
        limits.dedup();
        if let (Some(bucket), Some(capacity)) = (bucket, self.per_bucket) {
            let all = &mut self.limits;
            limits.push(*self.buckets.entry(bucket).or_insert_with(|| {
                let what = What::Bucket(bucket);
                all.push(Limit { what, capacity, used: 0, parked: BTreeSet::new() });
                all.len() - 1
            }));
        }
        if let Some(id) = self.lane_of.get(limits.as_slice()) {
            return *id;
        }
        let limits: Arc<[LimitId]> = limits.into();
        let id = self.lanes.len();
        let waiting = BTreeMap::new();
        self.lanes.push(Lane { limits: limits.clone(), waiting, place: Place::Empty });
        self.lane_of.insert(limits, id);
        id
    }

    /// A task starts to wait.
    pub(super) fn enqueue(&mut self, lane: LaneId, rank: Rank, key: TaskKey) {
        let Some(waiting) = self.lanes.get_mut(lane).map(|lane| &mut lane.waiting) else { return };
        let head = waiting.keys().next().copied();
        waiting.insert(rank, key);
        if head.is_none_or(|head| rank < head) {
            self.reposition(lane, head);
        }
    }

    /// A task no longer waits, without having been dispatched.
    pub(super) fn remove(&mut self, lane: LaneId, rank: Rank) {
        let Some(waiting) = self.lanes.get_mut(lane).map(|lane| &mut lane.waiting) else { return };
        let head = waiting.keys().next().copied();
        if waiting.remove(&rank).is_some() && head == Some(rank) {
            self.reposition(lane, head);
        }
    }

    /// Takes the best task that every limit lets through, and occupies its slot and permits.
    pub(super) fn take(&mut self) -> Option<(TaskKey, LaneId)> {
        while self.used < self.max_parallel {
            let (rank, id) = *self.ready.first()?;
            if let Some(full) = self.full_limit(id) {
                self.ready.remove(&(rank, id));
                self.set_place(id, Place::Parked(full));
                if let Some(limit) = self.limits.get_mut(full) {
                    limit.parked.insert((rank, id));
                }
                self.look_behind(id);
                continue;
            }
            let (_, key) = self.lanes.get_mut(id)?.waiting.pop_first()?;
            self.used += 1;
            self.for_limits(id, |limit| limit.used += 1);
            self.reposition(id, Some(rank));
            return Some((key, id));
        }
        None
    }

    /// A dispatched task of this lane gives its slot and permits back.
    pub(super) fn release(&mut self, lane: LaneId) {
        self.used = self.used.saturating_sub(1);
        self.for_limits(lane, |limit| limit.used = limit.used.saturating_sub(1));
        self.look_behind(lane);
    }

    /// Slots in use, and how many there are.
    pub(super) fn slots(&self) -> (usize, usize) {
        (self.used, self.max_parallel)
    }

    /// The full limits of a lane, with their capacity.
    pub(super) fn obstacles(&self, lane: LaneId) -> impl Iterator<Item = (&What, usize)> {
        let limits = self.lanes.get(lane).map_or(&[][..], |lane| &lane.limits);
        let limits = limits.iter().filter_map(|id| self.limits.get(*id));
        limits
            .filter(|limit| limit.used >= limit.capacity)
            .map(|limit| (&limit.what, limit.capacity))
    }

    /// Does this lane stand under this limit?
    pub(super) fn is_under(&self, lane: LaneId, what: &What) -> bool {
        self.lanes.get(lane).is_some_and(|lane| {
            lane.limits
                .iter()
                .any(|id| self.limits.get(*id).is_some_and(|limit| limit.what == *what))
        })
    }

    fn full_limit(&self, lane: LaneId) -> Option<LimitId> {
        let limits = &self.lanes.get(lane)?.limits;
        let is_full = |id: &LimitId| self.limits.get(*id).is_some_and(|l| l.used >= l.capacity);
        limits.iter().copied().find(is_full)
    }

    fn for_limits(&mut self, lane: LaneId, change: impl Fn(&mut Limit)) {
        let Some(lane) = self.lanes.get(lane) else { return };
        for id in lane.limits.iter() {
            if let Some(limit) = self.limits.get_mut(*id) {
                change(limit);
            }
        }
    }

    fn set_place(&mut self, lane: LaneId, place: Place) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.place = place;
        }
    }

    /// Puts a lane where its new head belongs; `old` is the head that it was filed under.
    fn reposition(&mut self, id: LaneId, old: Option<Rank>) {
        let Some(lane) = self.lanes.get(id) else { return };
        let (place, new) = (lane.place, lane.waiting.keys().next().copied());
        if let Some(old) = old {
            match place {
                Place::Empty => {}
                Place::Ready => {
                    self.ready.remove(&(old, id));
                }
                Place::Parked(at) => {
                    if let Some(limit) = self.limits.get_mut(at) {
                        limit.parked.remove(&(old, id));
                    }
                }
            }
        }
        let next = match (new, place) {
            (None, _) => Place::Empty,
            (Some(rank), Place::Parked(at)) => match self.limits.get_mut(at) {
                Some(limit)
                    if limit.used >= limit.capacity || old.is_some_and(|old| old < rank) =>
                {
                    limit.parked.insert((rank, id));
                    Place::Parked(at)
                }
                _ => Place::Ready,
            },
            (Some(_), Place::Empty | Place::Ready) => Place::Ready,
        };
        if let (Place::Ready, Some(rank)) = (next, new) {
            self.ready.insert((rank, id));
        }
        self.set_place(id, next);
        let worsened = old.is_some() && (new.is_none() || new > old);
        if place == Place::Ready && worsened {
            self.look_behind(id);
        }
    }

    /// For each limit of this lane that has room: its best parked lane becomes ready.
    fn look_behind(&mut self, lane: LaneId) {
        let Some(limits) = self.lanes.get(lane).map(|lane| Arc::clone(&lane.limits)) else {
            return;
        };
        for id in &*limits {
            let Some(limit) = self.limits.get_mut(*id) else { continue };
            if limit.used < limit.capacity
                && let Some((rank, best)) = limit.parked.pop_first()
            {
                self.ready.insert((rank, best));
                self.set_place(best, Place::Ready);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::slab::Slab;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Enqueue { priority: i32, bucket: Option<u32>, tags: Vec<u8> },
        Remove(usize),
        Take,
        Release(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let tags = prop::collection::vec(0u8..3, 0..3);
        prop_oneof![
            4 => (0..3i32, prop::option::of(0u32..3), tags)
                .prop_map(|(priority, bucket, tags)| Step::Enqueue { priority, bucket, tags }),
            1 => any::<usize>().prop_map(Step::Remove),
            4 => Just(Step::Take),
            3 => any::<usize>().prop_map(Step::Release),
        ]
    }

    #[derive(Clone)]
    struct Waiter {
        rank: Rank,
        key: TaskKey,
        lane: LaneId,
        bucket: Option<u32>,
        tags: BTreeSet<Text>,
    }

    fn name(tag: u8) -> Text {
        ["gpu", "net", "plain"][usize::from(tag)].into()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// The best dispatchable task of all, found the slow way, is the one that is taken.
        #[test]
        fn agrees_with_looking_at_every_task(
            steps in prop::collection::vec(step(), 1..80),
            max_parallel in 1usize..5,
            per_bucket in prop::option::of(1usize..3),
        ) {
            let resources = BTreeMap::from([("gpu".into(), 1), ("net".into(), 2)]);
            let limits =
                Limits { max_parallel, max_parallel_per_bucket: per_bucket, resources: resources.clone() };
            let mut admission = Admission::new(&limits);
            let mut keys = Slab::default();
            let (mut waiting, mut running) = (Vec::<Waiter>::new(), Vec::<Waiter>::new());
            for (seq, step) in (0..).zip(steps) {
                match step {
                    Step::Enqueue { priority, bucket, tags } => {
                        let tags: BTreeSet<Text> = tags.into_iter().map(name).collect();
                        let listed: Vec<Text> = tags.iter().cloned().collect();
                        let lane = admission.lane(bucket, &listed);
                        let (key, rank) = (keys.insert(()), (Reverse(priority), seq));
                        admission.enqueue(lane, rank, key);
                        waiting.push(Waiter { rank, key, lane, bucket, tags });
                    }
                    Step::Remove(i) if !waiting.is_empty() => {
                        let gone = waiting.remove(i % waiting.len());
                        admission.remove(gone.lane, gone.rank);
                    }
                    Step::Release(i) if !running.is_empty() => {
                        let done = running.remove(i % running.len());
                        admission.release(done.lane);
                    }
                    Step::Take => {
                        let free = |w: &&Waiter| {
                            let same_bucket =
                                running.iter().filter(|r| r.bucket.is_some() && r.bucket == w.bucket).count();
                            let bucket_ok = w.bucket.is_none() || per_bucket.is_none_or(|n| same_bucket < n);
                            bucket_ok && w.tags.iter().all(|tag| {
                                let used = running.iter().filter(|r| r.tags.contains(tag)).count();
                                resources.get(tag).is_none_or(|capacity| used < *capacity)
                            })
                        };
                        let best = waiting.iter().filter(free).min_by_key(|w| w.rank).cloned();
                        let best = best.filter(|_| running.len() < max_parallel);
                        let taken = admission.take();
                        prop_assert_eq!(taken.map(|(key, _)| key), best.as_ref().map(|w| w.key));
                        if let Some(best) = best {
                            waiting.retain(|w| w.key != best.key);
                            running.push(best);
                        }
                    }
                    Step::Remove(_) | Step::Release(_) => {}
                }
            }
        }
    }
}
