//! What a body is given.

use std::collections::BTreeMap;
use std::sync::Arc;

use chongming_core::{AttemptEnd, Value};

use crate::breach::{Breach, Outcome, same};
use crate::executor::stage::Stage;

/// A value in which everything that JSON can say is said.
pub(super) fn everything() -> Value {
    let map = [
        ("null", Value::Null),
        ("yes", Value::Bool(true)),
        ("least", Value::Int(i64::MIN)),
        ("odd", Value::Int(9_007_199_254_740_993)),
        ("most", Value::UInt(u64::MAX)),
        ("tiny", Value::Float(5e-324)),
        ("huge", Value::Float(f64::MAX)),
        ("minus zero", Value::Float(-0.0)),
        ("", Value::String("a\"\\\n\0\u{1b}同步🎉".into())),
        ("lists", Value::List(vec![Value::List(Vec::new()), Value::Map(BTreeMap::new())])),
    ];
    Value::Map(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

pub(in crate::executor) fn arguments_arrive(stage: Stage<'_>) -> Outcome {
    let end = stage.launch("echo", everything())?.end()?;
    same("the arguments, handed back", end, AttemptEnd::Completed(everything()))
}

pub(in crate::executor) fn it_knows_its_attempt(stage: Stage<'_>) -> Outcome {
    let mut prepared = stage.prepare("about", Value::Null)?;
    prepared.launch.attempt = 3;
    let id = prepared.launch.task_id.to_string();
    let about = Value::Map(
        [
            ("task_id".to_owned(), Value::String(id)),
            ("name".to_owned(), Value::String("contract.about".to_owned())),
            ("attempt".to_owned(), Value::Int(3)),
            ("upstream".to_owned(), Value::Map(BTreeMap::new())),
        ]
        .into(),
    );
    same("what the body knows", stage.start(prepared)?.end()?, AttemptEnd::Completed(about))
}

pub(in crate::executor) fn upstream_results_arrive(stage: Stage<'_>) -> Outcome {
    let mut prepared = stage.prepare("about", Value::Null)?;
    let upstream = [("fetch", everything()), ("漢 字.", Value::Null)];
    let upstream = upstream.map(|(node, value)| (node.into(), value));
    prepared.launch.upstream = Arc::new(upstream.into());
    let end = stage.start(prepared)?.end()?;
    let AttemptEnd::Completed(Value::Map(about)) = &end else {
        return Err(Breach::of("the end", "it completes", format_args!("{end:?}")));
    };
    let expected = [("fetch".to_owned(), everything()), ("漢 字.".to_owned(), Value::Null)];
    let expected = Value::Map(expected.into());
    same("the results that the body sees", about.get("upstream"), Some(&expected))
}
