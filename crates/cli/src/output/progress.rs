//! One line that shows how far a task has come.

use chongming_core::Progress;

use super::escape::visible;
use super::width::cut;

/// How many columns the bar itself takes.
const BAR: u64 = 20;

/// `40/100 rows part`: as it stands in a table.
pub fn summary(progress: &Progress) -> String {
    let mut parts = vec![match progress.total {
        Some(total) => format!("{}/{total}", progress.done),
        None => progress.done.to_string(),
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
pub fn bar(progress: &Progress, columns: usize) -> String {
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

fn fraction(progress: &Progress) -> Option<f64> {
    let fraction = progress.done / progress.total?;
    fraction.is_finite().then(|| fraction.clamp(0.0, 1.0))
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
