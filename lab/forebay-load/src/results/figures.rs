//! Figures as people read them: three digits and a unit.

/// A length of time given in microseconds: `85.3us`, `1.25ms`, `2.31s`.
pub(super) fn duration(us: f64) -> String {
    if us < 999.5 {
        format!("{}us", three_digits(us))
    } else if us < 999_500.0 {
        format!("{}ms", three_digits(us / 1e3))
    } else {
        format!("{}s", three_digits(us / 1e6))
    }
}

/// Operations per second: `85.3`, `12.3k`, `1.25M`.
pub(super) fn rate(per_second: f64) -> String {
    if per_second < 999.5 {
        three_digits(per_second)
    } else if per_second < 999_500.0 {
        format!("{}k", three_digits(per_second / 1e3))
    } else {
        format!("{}M", three_digits(per_second / 1e6))
    }
}

/// Bytes per second as megabytes (powers of ten) per second, without the unit.
pub(super) fn megabytes(bytes_per_second: f64) -> String {
    three_digits(bytes_per_second / 1e6)
}

/// The part that `of` is of `all`, in percent; a dash if there is nothing.
pub(super) fn percent(of: u64, all: u64) -> String {
    if all == 0 {
        return String::from("-");
    }
    match of as f64 / all as f64 * 100.0 {
        part if part > 0.0 && part < 1.0 => String::from("<1%"),
        part => format!("{part:.0}%"),
    }
}

/// From here on it is no longer of interest how many times more something became.
const TIMES_MAX: f64 = 99.5;

/// The way from `before` to `after`: `-85%`, `+12%`, `x25`, `>x99`, `<-99%`; a dash if there is no before.
pub(super) fn change(before: f64, after: f64) -> String {
    if before <= 0.0 {
        return String::from("-");
    }
    let ratio = after / before;
    if ratio >= TIMES_MAX {
        return String::from(">x99");
    }
    if ratio >= 10.0 {
        return format!("x{ratio:.0}");
    }
    match ((ratio - 1.0) * 100.0).round() {
        -100.0 if after > 0.0 => String::from("<-99%"),
        0.0 => String::from("0%"),
        percent => format!("{percent:+.0}%"),
    }
}

/// At least three digits of `value`, none behind the point that say nothing.
fn three_digits(value: f64) -> String {
    if value == 0.0 {
        String::from("0")
    } else if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_three_digits_and_a_unit() {
        let us = [0.0, 0.25, 9.996, 99.96, 999.4, 999.6, 1_254.0, 999_600.0, 61e6];
        let text = us.map(duration);
        assert_eq!(
            text,
            ["0us", "0.25us", "10.0us", "100us", "999us", "1.00ms", "1.25ms", "1.00s", "61.0s"]
        );
    }

    #[test]
    fn rates_have_three_digits() {
        let per_second = [0.0, 85.31, 999.6, 12_345.0, 999_600.0, 1_254_000.0];
        assert_eq!(per_second.map(rate), ["0", "85.3", "1.00k", "12.3k", "1.00M", "1.25M"]);
        assert_eq!([0.0, 1_234e3, 4_553e6].map(megabytes), ["0", "1.23", "4553"]);
    }

    #[test]
    fn parts_and_changes_are_percentages() {
        assert_eq!(
            [(1, 3), (1, 300), (0, 3), (0, 0)].map(|(of, all)| percent(of, all)),
            ["33%", "<1%", "0%", "-"]
        );
        let pairs = [
            (100.0, 15.0),
            (100.0, 112.0),
            (1.0, 25.3),
            (0.0, 1.0),
            (100.0, 100.2),
            (5.0, 110e3),
            (9e5, 5.0),
        ];
        assert_eq!(
            pairs.map(|(b, a)| change(b, a)),
            ["-85%", "+12%", "x25", "-", "0%", ">x99", "<-99%"]
        );
    }
}
