//! `docs/store-guide.md` shows the code of the example store. `UPDATE_DOCS=1` rewrites what it shows.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use chongming_contract::CLAUSES;

const PARTS: [(&str, &str); 10] = [
    ("fixture", "main.rs"),
    ("report", "main.rs"),
    ("struct", "store/mod.rs"),
    ("record", "store/records.rs"),
    ("write", "store/write.rs"),
    ("save", "store/write.rs"),
    ("page", "store/read.rs"),
    ("claim", "store/commands.rs"),
    ("beat", "store/nodes.rs"),
    ("use", "main.rs"),
];

/// What stands between the marks of this part, without indentation.
fn shown(name: &str, file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/redb_store");
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let mark = format!("// guide: {name}\n");
    let lines = text.split_once(&mark).unwrap().1.lines();
    let lines: Vec<&str> = lines.take_while(|line| line.trim() != "// guide: end").collect();
    let indent = lines.iter().filter(|line| !line.is_empty());
    let indent = indent.map(|line| line.len() - line.trim_start().len()).min().unwrap();
    let lines = lines.iter().map(|line| line.get(indent..).unwrap_or_default().to_owned());
    format!("```rust\n{}\n```\n", lines.collect::<Vec<_>>().join("\n").trim_end())
}

#[test]
fn the_page_shows_the_example() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/store-guide.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut expected = page.clone();
    for (name, file) in PARTS {
        let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
        let start = expected.find(&begin).unwrap() + begin.len();
        let stop = expected.find(&end).unwrap();
        expected.replace_range(start..stop, &shown(name, file));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    } else {
        assert!(page == expected, "run this test with UPDATE_DOCS=1 and look at the difference");
    }
}

#[test]
fn clauses_that_the_page_names_exist() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/store-guide.md");
    let page = fs::read_to_string(path).unwrap();
    let groups: Vec<&str> =
        CLAUSES.iter().map(|clause| clause.name.split_once("::").unwrap().0).collect();
    let quoted = page.split('`').skip(1).step_by(2);
    let named: Vec<&str> = quoted
        .filter(|text| text.split_once("::").is_some_and(|(group, _)| groups.contains(&group)))
        .collect();
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        assert!(CLAUSES.iter().any(|clause| clause.name == name), "there is no clause {name}");
    }
}
