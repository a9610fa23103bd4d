//! How a figure is printed: beside its raw limit, as text or (`--json`) as one object a line.

/// Options of the command line, and the printer.
pub(crate) struct Report {
    json: bool,
    only: Option<String>,
}

impl Report {
    /// `[--json] [PART OF A NAME]`; what else cargo passes is ignored.
    pub(crate) fn from_args() -> Self {
        let json = std::env::args().any(|arg| arg == "--json");
        Self { json, only: std::env::args().skip(1).find(|arg| !arg.starts_with("--")) }
    }

    /// Is this figure asked for?
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }

    /// Prints a figure.
    pub(crate) fn line(&self, name: &str, value: f64, unit: &str, raw: f64) {
        let ratio = value / raw;
        if self.json {
            let line = serde_json::json!({
                "name": name, "value": value, "unit": unit, "raw": raw, "ratio": ratio
            });
            println!("{line}");
        } else {
            println!("{name:36} {value:12.1} {unit:10} raw {raw:12.1}  ratio {ratio:.2}");
        }
    }
}
