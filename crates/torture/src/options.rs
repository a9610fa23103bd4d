//! What a run is told.

use std::time::Duration;

const USAGE: &str = "\
usage: cargo xtask torture [--seconds S | --minutes N] [--seed S] [--db sqlite|postgres|DSN]
                           [--supervisors N] [--keep]

  --seconds S, --minutes N   how long the monkey acts [default: 30 seconds]
  --seed S                   the same seed makes the same choices [default: 1]
  --db sqlite                a file on a small disk that fills up, where root can mount one
  --db postgres              a server of its own, which is restarted
  --db DSN                   a server that is left alone
  --supervisors N            so many at once [default: 6]
  --keep                     leaves the folder of the run behind, also when all is well
";

/// Where the tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Sqlite,
    OwnPostgres,
    Postgres(String),
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    pub(crate) store: Store,
    pub(crate) supervisors: usize,
    pub(crate) keep: bool,
}

impl Options {
    pub(crate) fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            duration: Duration::from_secs(30),
            seed: 1,
            store: Store::Sqlite,
            supervisors: 6,
            keep: false,
        };
        let mut args = args.iter();
        while let Some(&name) = args.next() {
            if name == "--help" {
                return Err(USAGE.to_owned());
            }
            if name == "--keep" {
                options.keep = true;
                continue;
            }
            if !["--seconds", "--minutes", "--seed", "--db", "--supervisors"].contains(&name) {
                return Err(format!("{name:?} is no option\n{USAGE}"));
            }
            let value = args.next().ok_or_else(|| format!("{name} wants a value\n{USAGE}"))?;
            let number = || {
                let number = value.parse::<u64>();
                number.map_err(|error| format!("{name} {value:?}: {error}\n{USAGE}"))
            };
            match name {
                "--seconds" => options.duration = Duration::from_secs(number()?),
                "--minutes" => options.duration = Duration::from_secs(number()?.saturating_mul(60)),
                "--seed" => options.seed = number()?,
                "--supervisors" => options.supervisors = number()?.clamp(1, 64) as usize,
                _ => {
                    options.store = match *value {
                        "sqlite" => Store::Sqlite,
                        "postgres" => Store::OwnPostgres,
                        dsn if dsn.starts_with("postgres") => Store::Postgres(dsn.to_owned()),
                        other => return Err(format!("--db {other:?} is no store\n{USAGE}")),
                    }
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_nonsense_is_refused() {
        let args = ["--minutes", "2", "--seed", "9", "--db", "postgresql://h/d", "--keep"];
        assert_eq!(
            Options::parse(&args),
            Ok(Options {
                duration: Duration::from_secs(120),
                seed: 9,
                store: Store::Postgres("postgresql://h/d".into()),
                supervisors: 6,
                keep: true,
            })
        );
        for wrong in [&["--seed"][..], &["--seed", "x"], &["--db", "mysql"], &["now"]] {
            assert!(Options::parse(wrong).unwrap_err().contains("usage:"), "{wrong:?}");
        }
    }
}
