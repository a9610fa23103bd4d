//! Which crate may depend on which: the picture of `docs/architecture.md` as a table.

use serde_json::Value;

/// A crate and what it may depend on, in its code and in its tests.
struct Edges {
    name: &'static str,
    normal: &'static [&'static str],
    dev: &'static [&'static str],
}

const CORE: &str = "chongming-core";
const CONTRACT: &str = "chongming-contract";
const TEST_POSTGRES: &str = "chongming-test-postgres";

const ALLOWED: &[Edges] = &[
    Edges { name: CORE, normal: &[], dev: &[CONTRACT] },
    Edges { name: CONTRACT, normal: &[CORE], dev: &[] },
    Edges { name: "chongming-store-sqlite", normal: &[CORE], dev: &[CONTRACT] },
    Edges { name: "chongming-store-postgres", normal: &[CORE], dev: &[CONTRACT, TEST_POSTGRES] },
    Edges { name: "chongming-executor-process", normal: &[CORE], dev: &[CONTRACT] },
    Edges { name: "chongming-pipeline", normal: &[CORE], dev: &["chongming-store-sqlite"] },
    Edges {
        name: "chongming-task",
        normal: &[
            CORE,
            "chongming-store-sqlite",
            "chongming-store-postgres",
            "chongming-executor-process",
            "chongming-pipeline",
        ],
        dev: &[],
    },
    // Plays the command line as well as an embedding program.
    Edges {
        name: "chongming-torture",
        normal: &[
            CORE,
            "chongming-store-sqlite",
            "chongming-store-postgres",
            "chongming-task",
            TEST_POSTGRES,
        ],
        dev: &[],
    },
    Edges { name: TEST_POSTGRES, normal: &[], dev: &[] },
    Edges { name: "xtask", normal: &[TEST_POSTGRES], dev: &[] },
];

/// The edges that are not in the table, and third-party dependencies of the core.
pub(crate) fn check(metadata: &Value) -> Vec<String> {
    let packages = list(metadata, "packages");
    let ours: Vec<&str> = packages.iter().map(|package| text(package, "name")).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = text(package, "name");
        let Some(allowed) = ALLOWED.iter().find(|edges| edges.name == name) else {
            findings.push(format!("{name} is not in the table of xtask/src/crates.rs"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let target = text(dependency, "name");
            // No kind = a normal dependency; build dependencies count as such.
            let is_dev = text(dependency, "kind") == "dev";
            let is_optional = dependency.get("optional").and_then(Value::as_bool) == Some(true);
            // What code may use, its tests may use too.
            let is_allowed =
                allowed.normal.contains(&target) || (is_dev && allowed.dev.contains(&target));
            if ours.contains(&target) {
                if !is_allowed {
                    findings.push(format!("{name} must not depend on {target}"));
                }
            } else if name == CORE && !is_dev && !is_optional {
                findings.push(format!(
                    "{name} must not depend on {target}: it has no third-party dependency"
                ));
            }
        }
        let defaults = package.get("features").map(|features| list(features, "default"));
        if name == CORE && defaults.is_some_and(|defaults| !defaults.is_empty()) {
            findings.push(format!("{name} must have no default features"));
        }
    }
    findings
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings(core: Value, store: Value) -> Vec<String> {
        check(&json!({"packages": [
            {"name": CORE, "dependencies": core, "features": {"serde": ["dep:serde"]}},
            {"name": "chongming-store-sqlite", "dependencies": store, "features": {}},
        ]}))
    }

    #[test]
    fn edges_in_the_table_are_allowed() {
        let core = json!([
            {"name": "serde", "kind": null, "optional": true},
            {"name": "proptest", "kind": "dev", "optional": false},
        ]);
        let store = json!([
            {"name": CORE, "kind": null, "optional": false},
            {"name": CORE, "kind": "dev", "optional": false},
            {"name": "rusqlite", "kind": null, "optional": false},
        ]);
        assert_eq!(findings(core, store), Vec::<String>::new());
    }

    #[test]
    fn all_others_are_found() {
        let core = json!([
            {"name": "libc", "kind": null, "optional": false},
            {"name": "chongming-store-sqlite", "kind": "dev", "optional": false},
        ]);
        let found = findings(core, json!([]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(check(&json!({"packages": [{"name": "new"}]})).len(), 1);
        let defaults = json!({"packages": [{"name": CORE, "features": {"default": ["serde"]}}]});
        assert_eq!(check(&defaults).len(), 1);
    }
}
