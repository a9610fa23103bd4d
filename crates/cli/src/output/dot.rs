//! Graphs in the language of Graphviz.

use std::fmt::Write as _;

use super::escape::visible;

/// A graph of several clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dot {
    body: String,
    clusters: usize,
}

/// A node: its words, one below the other, and the edges that lead to it.
pub(crate) struct DotNode<'a> {
    /// What stands in it.
    pub(crate) words: &'a [&'a str],
    /// The nodes, by number within the cluster, from which an edge comes.
    pub(crate) from: Vec<usize>,
    /// How these edges are drawn: a style of Graphviz.
    pub(crate) style: &'static str,
}

impl Dot {
    /// Adds a cluster of nodes.
    pub(crate) fn cluster<'a>(&mut self, name: &str, nodes: impl IntoIterator<Item = DotNode<'a>>) {
        let cluster = self.clusters;
        self.clusters += 1;
        let _ = writeln!(
            self.body,
            "  subgraph \"cluster_{cluster}\" {{\n    label={};",
            quoted(&[name])
        );
        // Writing to a String cannot fail.
        for (number, node) in nodes.into_iter().enumerate() {
            let _ = writeln!(self.body, "    n{cluster}_{number} [label={}];", quoted(node.words));
            for from in node.from {
                let style = node.style;
                let _ = writeln!(
                    self.body,
                    "    n{cluster}_{from} -> n{cluster}_{number} [style={style}];"
                );
            }
        }
        self.body.push_str("  }\n");
    }

    /// The whole text.
    pub(crate) fn text(&self) -> String {
        format!("digraph {{\n  rankdir=LR;\n  node [shape=box];\n{}}}", self.body)
    }
}

/// Words below one another as a quoted label: nothing in them is syntax.
fn quoted(words: &[&str]) -> String {
    let escape = |word: &&str| {
        let word = visible(word).replace('\\', "\\\\").replace('"', "\\\"");
        // Graphviz reads entities of HTML in every label.
        word.replace('&', "&amp;")
    };
    format!("\"{}\"", words.iter().map(escape).collect::<Vec<_>>().join("\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_syntax() {
        for (word, label) in [
            ("a", r#""a""#),
            (r#"a" -> b; ""#, r#""a\" -> b; \"""#),
            (r"ends in \", r#""ends in \\""#),
            (r"\N\l", r#""\\N\\l""#),
            ("同步\n", r#""同步\\n""#),
            ("<b>", r#""<b>""#),
            ("a & b &lt; c", r#""a &amp; b &amp;lt; c""#),
        ] {
            assert_eq!(quoted(&[word]), label);
        }
        assert_eq!(quoted(&["a", "b"]), r#""a\nb""#);
    }
}
