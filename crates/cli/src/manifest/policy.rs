//! `retry` and `timeout`, which tasks and pipeline nodes share.

use std::num::NonZeroU32;

use chongming_core::{Backoff, FailureKind, MAX_DELAY, RetryPolicy, Timeout};

use super::reader::Node;
use crate::nearest::nearest;

pub(super) fn retry(node: &Node<'_, '_>) -> Option<RetryPolicy> {
    let fields = node.fields("a table such as { max_attempts = 3 }")?;
    let max_attempts = fields.require("max_attempts", |node| node.integer(1_u32));
    let backoff = fields.get("backoff").map_or(Some(Backoff::None), |node| backoff(&node));
    let retry_on =
        fields.read("retry_on", |node| node.list(failure_kind, "a list of failure kinds"));
    if retry_on.as_ref().is_some_and(Vec::is_empty) {
        fields.node.problem("retries on nothing: name a kind in `retry_on` or leave it out");
    }
    fields.finish();
    Some(RetryPolicy {
        max_attempts: max_attempts.and_then(NonZeroU32::new)?,
        backoff: backoff?,
        retry_on,
    })
}

fn failure_kind(node: &Node<'_, '_>) -> Option<FailureKind> {
    let text = node.string()?;
    let retryable = || FailureKind::ALL.into_iter().filter(|kind| kind.is_retryable());
    match text.parse::<FailureKind>() {
        Ok(kind) if kind.is_retryable() => return Some(kind),
        Ok(kind) => node.problem(format!("is `{kind}`, which is never retried; remove it")),
        Err(_) => {
            let help = match nearest(text, retryable().map(FailureKind::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let kinds: Vec<&str> = retryable().map(FailureKind::as_str).collect();
                    format!("the kinds are {}", kinds.join(", "))
                }
            };
            node.problem(format!("is `{text}`, which is no failure kind; {help}"));
        }
    }
    None
}

fn backoff(node: &Node<'_, '_>) -> Option<Backoff> {
    let fields = node.fields("a table such as { base = \"1s\", factor = 2.0, max = \"1m\" }")?;
    let base = fields.require("base", Node::duration);
    let factor_node = fields.get("factor");
    let factor = factor_node.as_ref().and_then(Node::number);
    if let (Some(node), Some(factor)) = (&factor_node, factor)
        && factor < 1.0
    {
        node.problem(format!("is {factor}; a delay that does not shrink needs at least 1"));
    }
    let max_node = fields.get("max");
    let max = max_node.as_ref().and_then(Node::duration);
    if let (Some(node), Some(max), Some(base)) = (&max_node, max, base)
        && max < base
    {
        node.problem("is shorter than `base`, the shortest delay");
    }
    let jitter_node = fields.get("jitter");
    let jitter = jitter_node.as_ref().and_then(Node::number);
    if let (Some(node), Some(jitter)) = (&jitter_node, jitter)
        && !(0.0..=1.0).contains(&jitter)
    {
        node.problem(format!("is {jitter}; it is a share from 0 to 1"));
    }
    if factor_node.is_none() {
        for node in [&max_node, &jitter_node].into_iter().flatten() {
            node.problem("belongs to a growing delay: add `factor`, or leave it out");
        }
    }
    fields.finish();
    match factor_node {
        None => base.map(Backoff::Fixed),
        Some(_) => Some(Backoff::Exponential {
            base: base?,
            factor: factor?,
            max: max.unwrap_or(MAX_DELAY),
            jitter: jitter.unwrap_or(0.0),
        }),
    }
}

pub(super) fn timeout(node: &Node<'_, '_>) -> Option<Timeout> {
    let fields = node.fields("a table such as { per_attempt = \"30m\" }")?;
    let timeout = Timeout {
        start: fields.read("start", Node::positive_duration),
        per_attempt: fields.read("per_attempt", Node::positive_duration),
        idle: fields.read("idle", Node::positive_duration),
    };
    fields.finish();
    Some(timeout)
}
