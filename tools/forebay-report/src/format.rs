//! Numbers as people read them.

/// Bytes as a power of 1024 where that is whole: `4 KiB`, `1 MiB`, `1000 B`.
pub fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => {
            format!("{} MiB", bytes >> 20)
        }
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => {
            format!("{} KiB", bytes >> 10)
        }
        bytes => format!("{bytes} B"),
    }
}

/// A number with two digits behind the point at most, and thousands, millions or billions as a
/// letter: 12000000 as `12M`.
pub fn scaled(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{scaled:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

/// A change, as a part of what was before: `-9.8 %`.
pub fn percent_of_change(change: f64) -> String {
    format!("{:+.1} %", change * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let labels = [0.0, 0.25, 950.0, 12_000.0, 1_500_000.0, 2e9].map(scaled);
        assert_eq!(labels, ["0", "0.25", "950", "12k", "1.5M", "2G"]);
    }

    #[test]
    fn sizes_are_powers_where_they_are_whole() {
        assert_eq!([512, 4096, 1 << 20, 4097].map(size), ["512 B", "4 KiB", "1 MiB", "4097 B"]);
    }
}
