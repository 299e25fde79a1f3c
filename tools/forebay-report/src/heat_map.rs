//! Maps of a figure over two others, as SVG that needs nothing alongside it.

use core::fmt::Write;

use crate::format::scaled;
use crate::page::escaped;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 590.0;
/// Where the map lies in the picture.
const LEFT: f64 = 76.0;
const TOP: f64 = 40.0;
const ACROSS: f64 = 660.0;
const UP: f64 = 400.0;
/// Marks along each axis.
const TICKS: usize = 5;
/// Where the legend stands.
const LEGEND: f64 = TOP + UP + 58.0;
/// From dark blue to yellow, which is also from dark to light, for readers who see no colours
/// (cividis; Nunez, Anderton and Renslow, 2018).
const COLOURS: [(f64, f64, f64); 6] = [
    (0.0, 34.0, 78.0),
    (53.0, 69.0, 108.0),
    (102.0, 105.0, 112.0),
    (148.0, 142.0, 119.0),
    (200.0, 184.0, 102.0),
    (253.0, 231.0, 55.0),
];
const STYLE: &str = ".heat{color:#1b1b1b;font:13px system-ui,sans-serif}.heat text{fill:currentColor}\
.heat .axis,.heat .hatch{stroke:currentColor;fill:none}.heat .halo{stroke:#fff;fill:none}\
.heat .line{stroke:#000;fill:none}.heat .cell:hover{stroke:currentColor;stroke-width:2}\
@media screen and (prefers-color-scheme:dark){.heat{color:#ddd;background:#16181b}}";

/// A figure over two others, coloured by its logarithm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// A name of letters, digits and hyphens that no other map of a page has.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What x and y are, with their units.
    pub axes: [String; 2],
    /// What the colours are, with the unit.
    pub figure: String,
    /// The cells.
    pub cells: Vec<HeatCell>,
    /// Lines over them.
    pub lines: Vec<HeatLine>,
    /// What the two marks mean.
    pub marks: [String; 2],
}

/// A cell of a [`HeatMap`].
#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    /// From where to where it reaches along x.
    pub x: (f64, f64),
    /// And along y.
    pub y: (f64, f64),
    /// Its figure, above 0; hatched without one.
    pub value: Option<f64>,
    /// Which of the two marks it has: a cross, or a circle.
    pub mark: Option<usize>,
    /// What is said of it where the pointer rests on it.
    pub note: String,
}

/// A line over the cells of a [`HeatMap`].
#[derive(Clone, Debug, PartialEq)]
pub struct HeatLine {
    /// Its name in the legend.
    pub name: String,
    /// How long its dashes and the gaps between them are; empty for a whole line.
    pub dashes: String,
    /// How wide it is.
    pub width: f64,
    /// Points that are joined, for each of its pieces.
    pub pieces: Vec<Vec<(f64, f64)>>,
}

impl HeatMap {
    /// The map as an SVG document; its texts are escaped.
    pub fn svg(&self) -> String {
        stacked(core::slice::from_ref(self))
    }

    fn draw(&self, svg: &mut String) {
        let scales = Scales::of(&self.cells);
        let Self { id, title, .. } = self;
        let (title, middle) = (escaped(title), LEFT + ACROSS / 2.0);
        *svg += &format!(
            "<defs><pattern id=\"{id}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
             <path class=\"hatch\" opacity=\".5\" d=\"M0 6L6 0\"/></pattern></defs>\n\
             <text x=\"{middle}\" y=\"24\" text-anchor=\"middle\" font-size=\"16\">{title}</text>\n"
        );
        for cell in &self.cells {
            self.cell(svg, &scales, cell);
        }
        let clip = format!("{id}-clip");
        *svg += &format!(
            "<clipPath id=\"{clip}\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{ACROSS}\" \
             height=\"{UP}\"/></clipPath><g clip-path=\"url(#{clip})\">\n"
        );
        for line in &self.lines {
            for piece in &line.pieces {
                let points = piece.iter().map(|&point| {
                    let (x, y) = scales.place(point);
                    format!("{x:.1},{y:.1}")
                });
                stroke(svg, line, &points.collect::<Vec<_>>().join(" "));
            }
        }
        *svg += "</g>\n";
        for cell in self.cells.iter().filter(|cell| cell.mark.is_some()) {
            let (x, y) = ((cell.x.0 + cell.x.1) / 2.0, (cell.y.0 + cell.y.1) / 2.0);
            mark(svg, scales.place((x, y)), cell.mark);
        }
        self.axes(svg, &scales);
        self.legend(svg, scales.range);
    }

    fn cell(&self, svg: &mut String, scales: &Scales, cell: &HeatCell) {
        let ((left, bottom), (right, top)) =
            (scales.place((cell.x.0, cell.y.0)), scales.place((cell.x.1, cell.y.1)));
        let (least, most) = scales.range;
        let fill = cell.value.map_or_else(
            || format!("url(#{})", self.id),
            |value| colour((value / least).ln() / (most / least).ln()),
        );
        let (width, height, note) = (right - left, bottom - top, escaped(&cell.note));
        *svg += &format!(
            "<rect class=\"cell\" shape-rendering=\"crispEdges\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" fill=\"{fill}\"><title>{note}</title></rect>\n"
        );
    }

    fn axes(&self, svg: &mut String, scales: &Scales) {
        let &Scales { x_most, y_most, .. } = scales;
        *svg += &format!(
            "<rect class=\"axis\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{ACROSS}\" height=\"{UP}\"/>\n"
        );
        for tick in 0..=TICKS {
            let part = tick as f64 / TICKS as f64;
            let (x, y) = scales.place((x_most * part, y_most * part));
            let (below, left) = (TOP + UP + 18.0, LEFT - 8.0);
            let label = |most: f64| scaled(rounded(most * part));
            *svg += &format!(
                "<text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{}</text>\
                 <text x=\"{left}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                label(x_most),
                y + 4.0,
                label(y_most),
            );
        }
        let (x, y) = (escaped(&self.axes[0]), escaped(&self.axes[1]));
        let (middle, below, half) = (LEFT + ACROSS / 2.0, TOP + UP + 38.0, TOP + UP / 2.0);
        *svg += &format!(
            "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{x}</text>\
             <text transform=\"translate(16 {half}) rotate(-90)\" text-anchor=\"middle\">{y}</text>\n"
        );
    }

    fn legend(&self, svg: &mut String, (least, most): (f64, f64)) {
        const STEPS: usize = 40;
        let (step, bar) = (280.0 / STEPS as f64, LEGEND - 10.0);
        for index in 0..STEPS {
            let (x, fill) =
                (LEFT + step * index as f64, colour((index as f64 + 0.5) / STEPS as f64));
            *svg += &format!(
                "<rect x=\"{x:.1}\" y=\"{bar}\" width=\"{:.1}\" height=\"12\" fill=\"{fill}\"/>",
                step + 0.3
            );
        }
        for part in [0.0, 0.5, 1.0] {
            let value = scaled(rounded(least * (most / least).powf(part)));
            let (x, y) = (LEFT + 280.0 * part, LEGEND + 18.0);
            *svg += &format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{value}</text>");
        }
        let (x, y) = (LEFT + 300.0, LEGEND);
        *svg += &format!("<text x=\"{x}\" y=\"{y}\">{}</text>\n", escaped(&self.figure));
        let mut entry = Entry { x: LEFT, y: LEGEND + 42.0 };
        for line in &self.lines {
            let (x, y) = entry.next(svg, &line.name);
            let points = format!("{x:.1},{y:.1} {:.1},{y:.1}", x + 26.0);
            stroke(svg, line, &points);
        }
        for (index, name) in self.marks.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let (x, y) = entry.next(svg, name);
            mark(svg, (x + 14.0, y), Some(index));
        }
        let (x, y) = entry.next(svg, "the disk did not serve the load");
        *svg += &format!(
            "<rect class=\"axis\" x=\"{x}\" y=\"{}\" width=\"26\" height=\"12\" \
             style=\"fill:url(#{})\"/>\n",
            y - 6.0,
            self.id
        );
    }
}

/// How far a map reaches, and from which figure to which.
struct Scales {
    x_most: f64,
    y_most: f64,
    range: (f64, f64),
}

impl Scales {
    fn of(cells: &[HeatCell]) -> Self {
        let most = |along: fn(&HeatCell) -> (f64, f64)| {
            let most = cells.iter().map(|cell| along(cell).1).fold(0.0, f64::max);
            if most > 0.0 { most } else { 1.0 }
        };
        let values = || cells.iter().filter_map(|cell| cell.value);
        let (least, greatest) =
            (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        let range = if least < greatest { (least, greatest) } else { (1.0, 10.0) };
        Self { x_most: most(|cell| cell.x), y_most: most(|cell| cell.y), range }
    }

    /// Where a point of the map is in the picture.
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (LEFT + x / self.x_most * ACROSS, TOP + UP - y / self.y_most * UP)
    }
}

/// Maps below each other, as one SVG document.
pub fn stacked(maps: &[HeatMap]) -> String {
    let height = HEIGHT * maps.len().max(1) as f64;
    let mut svg = format!(
        "<svg class=\"heat\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\"><style>{STYLE}</style>\n"
    );
    for (index, map) in maps.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate(0 {})\">", HEIGHT * index as f64);
        map.draw(&mut svg);
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

/// Where the next name of a legend stands.
struct Entry {
    x: f64,
    y: f64,
}

impl Entry {
    /// Writes the name; the place of what it explains.
    fn next(&mut self, svg: &mut String, name: &str) -> (f64, f64) {
        let width = 48.0 + 7.0 * name.chars().count() as f64;
        if self.x + width > WIDTH {
            (self.x, self.y) = (LEFT, self.y + 20.0);
        }
        let at = (self.x, self.y - 4.0);
        let (x, y, name) = (self.x + 32.0, self.y, escaped(name));
        *svg += &format!("<text x=\"{x}\" y=\"{y}\">{name}</text>");
        self.x += width;
        at
    }
}

/// A line that is seen on light and on dark.
fn stroke(svg: &mut String, line: &HeatLine, points: &str) {
    let HeatLine { dashes, width, .. } = line;
    *svg += &format!(
        "<polyline class=\"halo\" stroke-width=\"{}\" points=\"{points}\"/>\
         <polyline class=\"line\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\" \
         points=\"{points}\"/>\n",
        width + 2.0
    );
}

/// A cross, or a circle.
fn mark(svg: &mut String, (x, y): (f64, f64), which: Option<usize>) {
    let shape = if which == Some(0) {
        format!("M{:.1} {:.1}l8 8m0 -8l-8 8", x - 4.0, y - 4.0)
    } else {
        format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0)
    };
    *svg += &format!(
        "<path class=\"halo\" stroke-width=\"3.5\" pointer-events=\"none\" d=\"{shape}\"/>\
         <path class=\"line\" stroke-width=\"1.5\" pointer-events=\"none\" d=\"{shape}\"/>\n"
    );
}

/// The colour at a part of the scale.
fn colour(part: f64) -> String {
    let place = part.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let index = (place as usize).min(COLOURS.len() - 2);
    let (low, high, on) = (COLOURS[index], COLOURS[index + 1], place - index as f64);
    let mix = |low: f64, high: f64| (low + (high - low) * on).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(low.0, high.0), mix(low.1, high.1), mix(low.2, high.2))
}

/// Three digits of a number.
fn rounded(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powf((value.log10().floor() - 2.0).min(9.0));
    (value / scale).round() * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(place: f64, value: Option<f64>) -> HeatCell {
        let x = (place, place + 1.0);
        HeatCell { x, y: (0.0, 1.0), value, mark: None, note: "1 < 2".into() }
    }

    #[test]
    fn a_map_shows_cells_lines_and_marks() {
        let mut map = HeatMap { id: "a".into(), title: "x & y".into(), ..HeatMap::default() };
        map.cells = vec![cell(0.0, Some(1.0)), cell(1.0, Some(100.0)), cell(2.0, None)];
        map.cells[0].mark = Some(0);
        map.lines.push(HeatLine {
            name: "border".into(),
            dashes: String::new(),
            width: 2.0,
            pieces: vec![vec![(0.0, 0.0), (3.0, 1.0)]],
        });
        let svg = map.svg();
        for part in ["x &amp; y", "1 &lt; 2", "#00224e", "#fde737", "url(#a)", "border", "l8 8m0"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(stacked(&[map.clone(), map]).contains("height=\"1180\""));
    }

    #[test]
    fn a_map_of_nothing_is_drawn_too() {
        assert!(!HeatMap::default().svg().contains("NaN"));
        let mut map = HeatMap { cells: vec![cell(0.0, Some(5.0))], ..HeatMap::default() };
        map.cells.push(cell(1.0, Some(5.0)));
        assert!(!map.svg().contains("NaN"));
    }
}
