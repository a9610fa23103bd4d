//! One line that shows how far a task has come.

use chongming_core::Progress;

use super::escape::visible;
use super::width::cut;

/// How many columns the bar itself takes.
const BAR: u64 = 20;

/// `40/100 rows part`: as it stands in a table.
pub(crate) fn summary(progress: &Progress) -> String {
    let mut parts = vec![match progress.total {
        Some(total) => format!("{}/{}", number(progress.done), number(total)),
        None => number(progress.done),
    }];
    for part in [&progress.unit, &progress.message].into_iter().flatten() {
        if !part.is_empty() {
            parts.push(visible(part).into_owned());
        }
    }
    parts.join(" ")
}

/// `[########············]  40% 40/100 rows part`, cut to the terminal's columns. Without a total
/// there is no bar.
pub(crate) fn bar(progress: &Progress, columns: usize) -> String {
    let line = match fraction(progress) {
        Some(fraction) => {
            // In 0..=1, so the products fit and are not negative.
            let filled = (fraction * BAR as f64) as u64;
            let percent = (fraction * 100.0) as u64;
            let bar: String = (0..BAR).map(|at| if at < filled { '#' } else { '·' }).collect();
            format!("[{bar}] {percent:>3}% {}", summary(progress))
        }
        None => summary(progress),
    };
    cut(&line, columns)
}

/// A task says what it likes: only of a positive total there is a part, and it is at most all.
fn fraction(progress: &Progress) -> Option<f64> {
    let total = progress.total.filter(|total| *total > 0.0)?;
    Some((progress.done / total).clamp(0.0, 1.0))
}

/// At most three decimals, and never so many digits that nothing else has room.
fn number(number: f64) -> String {
    /// Up to here floats are exact to a thousandth.
    const LONGEST: f64 = 1e12;
    let rounded = (number * 1000.0).round() / 1000.0;
    if number.abs() >= LONGEST || (rounded == 0.0 && number != 0.0) {
        format!("{number:.3e}")
    } else {
        // Adding zero turns -0 into 0.
        (rounded + 0.0).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_says_how_far_it_is() {
        let view = |done, total| Progress {
            done,
            total,
            unit: Some("rows".into()),
            message: Some("part".into()),
        };
        for (progress, line) in [
            (view(40.0, Some(100.0)), "[########············]  40% 40/100 rows part"),
            (view(3.0, Some(3.0)), "[####################] 100% 3/3 rows part"),
            (view(5.0, Some(3.0)), "[####################] 100% 5/3 rows part"),
            (view(-1.0, Some(3.0)), "[····················]   0% -1/3 rows part"),
            (view(0.0, Some(0.0)), "0/0 rows part"),
            (view(7.0, None), "7 rows part"),
            (view(-5.0, Some(-10.0)), "-5/-10 rows part"),
            (view(-0.0, Some(1.0)), "[····················]   0% 0/1 rows part"),
            (view(0.1 + 0.2, Some(1e300)), "[····················]   0% 0.3/1.000e300 rows part"),
            (
                view(1e300, Some(1e-300)),
                "[####################] 100% 1.000e300/1.000e-300 rows part",
            ),
        ] {
            assert_eq!(bar(&progress, 80), line);
        }
        assert_eq!(bar(&view(40.0, Some(100.0)), 10), "[########…");
    }

    #[test]
    fn hostile_messages_are_harmless() {
        let message = Some("a\r\x1b[2Jb".into());
        let progress = Progress { done: 1.0, total: None, unit: None, message };
        assert_eq!(summary(&progress), "1 a\\r\\x1b[2Jb");
    }
}
