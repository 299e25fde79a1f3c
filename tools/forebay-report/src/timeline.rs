//! What became of single requests when, as bars along time, as SVG that needs nothing alongside it.

use crate::format::scaled;
use crate::page::escaped;

const WIDTH: f64 = 760.0;
/// Where the bars begin, and how long they are at most.
const LEFT: f64 = 230.0;
const ACROSS: f64 = 500.0;
/// More of a name does not fit alongside its bar.
const NAME_MAX: usize = 30;
const TOP: f64 = 40.0;
const ROW: f64 = 20.0;
const TICKS: usize = 5;
/// Distinct also to most colour-blind readers (Okabe and Ito, 2008).
const COLOURS: [&str; 3] = ["#8c8c8c", "#0072b2", "#d55e00"];
const STYLE: &str = ".timeline{color:#1b1b1b;font:13px system-ui,sans-serif}.timeline text{fill:currentColor}\
.timeline .axis{stroke:currentColor;opacity:.25}\
@media screen and (prefers-color-scheme:dark){.timeline{color:#ddd;background:#16181b}}";

/// Requests as bars, each from when it was due.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// What it shows.
    pub title: String,
    /// What the three parts of a bar are.
    pub parts: [String; 3],
    /// The requests.
    pub rows: Vec<TimelineRow>,
}

/// One request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineRow {
    /// What stands alongside its bar.
    pub name: String,
    /// How long each part took, in milliseconds.
    pub millis: [f64; 3],
    /// What is said of it where the pointer rests on it.
    pub note: String,
}

impl Timeline {
    /// The bars as an SVG document; texts are escaped.
    pub fn svg(&self) -> String {
        let total = |row: &TimelineRow| row.millis.iter().sum::<f64>();
        let most = self.rows.iter().map(total).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let bottom = TOP + ROW * self.rows.len() as f64;
        let height = bottom + 72.0;
        let title = escaped(&self.title);
        let middle = WIDTH / 2.0;
        let mut svg = format!(
            "<svg class=\"timeline\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" \
             height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\"><style>{STYLE}</style>\n\
             <text x=\"{middle}\" y=\"22\" text-anchor=\"middle\" font-size=\"17\">{title}</text>\n"
        );
        for tick in 0..=TICKS {
            let part = tick as f64 / TICKS as f64;
            let (x, below) = (LEFT + ACROSS * part, bottom + 16.0);
            let label = scaled(most * part);
            svg += &format!(
                "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{label}</text>\n"
            );
        }
        for (index, row) in self.rows.iter().enumerate() {
            bar(&mut svg, row, TOP + ROW * index as f64, most);
        }
        let (middle, below) = (LEFT + ACROSS / 2.0, bottom + 36.0);
        svg += &format!("<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">ms</text>\n");
        let mut x = 20.0;
        for (name, colour) in self.parts.iter().zip(COLOURS) {
            let (y, label_x, baseline) = (bottom + 50.0, x + 20.0, bottom + 59.0);
            svg += &format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"14\" height=\"9\" fill=\"{colour}\"/>\
                 <text x=\"{label_x}\" y=\"{baseline}\">{}</text>\n",
                escaped(name)
            );
            x += 48.0 + 7.0 * name.chars().count() as f64;
        }
        svg + "</svg>\n"
    }
}

fn bar(svg: &mut String, row: &TimelineRow, y: f64, most: f64) {
    let (end, baseline) = (LEFT - 8.0, y + 14.0);
    let note = escaped(&row.note);
    let name = match row.name.char_indices().nth(NAME_MAX) {
        // its end tells more: when it was
        Some(_) => {
            let skipped = row.name.chars().count() - NAME_MAX;
            format!("\u{2026}{}", row.name.chars().skip(skipped).collect::<String>())
        }
        None => row.name.clone(),
    };
    let name = escaped(&name);
    *svg += &format!("<text x=\"{end}\" y=\"{baseline}\" text-anchor=\"end\">{name}</text><g>");
    let mut x = LEFT;
    for (millis, colour) in row.millis.into_iter().zip(COLOURS) {
        let width = (millis / most * ACROSS).max(0.0);
        let top = y + 4.0;
        *svg += &format!(
            "<rect x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"12\" fill=\"{colour}\">\
             <title>{note}</title></rect>"
        );
        x += width;
    }
    *svg += "</g>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_requests_took() {
        let row =
            |millis| TimelineRow { name: "a < b".into(), millis, note: String::from("1 & 2") };
        let parts = ["due", "queued", "in the disk"].map(String::from);
        let rows = vec![row([0.0, 6.0, 2.0]), row([1.0, 0.0, 3.0])];
        let svg = Timeline { title: "x".into(), parts, rows }.svg();
        for part in ["a &lt; b", "1 &amp; 2", "width=\"375.0\"", "width=\"125.0\"", "in the disk"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(!Timeline::default().svg().contains("NaN"));
    }
}
