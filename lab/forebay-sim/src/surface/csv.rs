//! Measured surfaces as CSV: one load a line.

use std::borrow::Cow;

use forebay_config::{ConfigError, Position};

use super::grid::{Axes, Cell, Grid, LATENCY_MAX_US, load, sorted};

/// The columns of a surface file, by their names in the two forms that go round, and their largest
/// figures: far above any disk.
const COLUMNS: [(&[&str], f64); 8] = [
    (&["w_bw_Bps", "write_bandwidth_bytes_per_sec", "large_read_bandwidth", "write_bytes"], 1e15),
    (&["r_iops", "read_iops", "read_bytes"], 1e12),
    (&["p50_ms"], LATENCY_MAX_US / 1e3),
    (&["p95_ms"], LATENCY_MAX_US / 1e3),
    (&["p95_clipped"], 1.0),
    (&["p99_ms"], LATENCY_MAX_US / 1e3),
    (&["p999_ms"], LATENCY_MAX_US / 1e3),
    (&["missed"], 1.0),
];
/// What stands before the names of latencies where they are those of writes.
const OF_WRITES: &str = "write_";
/// Where that stands, every load has a line, and those without are not known.
const MISSED: usize = 7;
/// The first of them are in every file.
const REQUIRED: usize = 4;
/// Those that say nothing of a load that the disk did not carry.
const LATENCIES: [usize; 4] = [2, 3, 5, 6];
/// The forms of the first line.
const FORMS: &str = "write `w_bw_Bps,r_iops,p50_ms,p95_ms,p95_clipped` or \
                     `write_bandwidth_bytes_per_sec,read_iops,p50_ms,p95_ms`, with `p99_ms` and \
                     `p999_ms` where they are known (or `_us` or `_ns` for `_ms`), and `missed` \
                     where other loads are not known; of writes, `write_p50_ms` and so on";
/// Other units of latencies, and how many milliseconds they have.
const UNITS: [(&str, f64); 2] = [("us", 1e-3), ("ns", 1e-6)];
/// What stands between figures, in the order of preference.
const SEPARATORS: [char; 3] = [',', ';', '\t'];
/// What programs write for a figure that is not there.
const NOTHING: [&str; 6] = ["", "na", "n/a", "nan", "null", "none"];
/// Without lines of missed loads a file has at most this many different loads along each axis.
const AXIS_MAX: usize = 64;
/// This many characters of what is wrong are quoted.
const QUOTED_MAX: usize = 80;

impl Grid {
    /// Reads the CSV `text` of the file called `file`, as [`Grid::parse_csv`], and makes sure that
    /// a disk can be fitted to it.
    ///
    /// # Errors
    /// Those of [`Grid::parse_csv`] and of [`Grid::enough_for_a_disk`].
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let grid = Self::parse_csv(file, text)?;
        grid.enough_for_a_disk(file)?;
        Ok(grid)
    }

    /// Reads the CSV `text` of the file called `file`: a line with the names
    /// `w_bw_Bps,r_iops,p50_ms,p95_ms,p95_clipped` or
    /// `write_bandwidth_bytes_per_sec,read_iops,p50_ms,p95_ms`, with `p99_ms` and `p999_ms` where
    /// they are known, then a line for each load. Lines that begin with `#` are skipped, and so is
    /// a first column without a name. Latencies of writes have `write_` before their names.
    /// Latencies may be in `_us` and `_ns`. Figures may be in quotes, and apart by semicolons or
    /// tabs; then they may have decimal commas.
    ///
    /// A line with empty latencies, or `NA` or `NaN`, is a load that the disk did not carry, and
    /// one with 1 as `missed`. In a file without such lines and such a column every combination of
    /// the loads along both axes that has no line is one.
    ///
    /// # Errors
    /// A column is missing or unknown, a figure is out of bounds, a load is given twice, or there
    /// are more than 1024 of them.
    pub fn parse_csv(file: &str, text: &str) -> Result<Self, ConfigError> {
        // spreadsheets begin a file with a byte order mark
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#'));
        let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let (number, header) = lines.next().unwrap_or((1, ""));
        let header =
            Header::parse(header.trim()).map_err(|message| error(file, number, None, &message))?;
        let mut grid = Self::new(Vec::new(), Vec::new());
        (grid.is_of_writes, grid.axes) = (header.is_of_writes, header.axes);
        let has_decimal_commas = lines.clone().any(|(_, line)| header.shows_decimal_comma(line));
        for (number, text) in lines {
            let line = Line { file, number, header: &header, has_decimal_commas };
            let (at, cell) = line.parse(text)?;
            grid.check_new(at, "remove it").map_err(|message| line.error(None, &message))?;
            grid.push(at, cell);
        }
        if grid.missed.is_empty() && header.place(MISSED).is_none() {
            grid.missed = absent(file, &grid.cells)?;
        }
        Ok(grid)
    }

    /// The surface as CSV, which [`Grid::parse_csv`] reads back: the 99th percentile and the 99.9th
    /// where all cells have them, and `missed` where there are combinations of which nothing is
    /// known.
    pub fn to_csv(&self) -> String {
        type Tail = fn(&Cell) -> Option<f64>;
        let of = if self.is_of_writes { OF_WRITES } else { "" };
        let [x, y] = self.axes.columns();
        let mut text = format!("{x},{y},{of}p50_ms,{of}p95_ms,p95_clipped");
        let tails: [(&str, Tail); 2] =
            [("p99_ms", |cell| cell.p99_us), ("p999_ms", |cell| cell.p999_us)];
        let known = |(_, tail): &(&str, Tail)| self.cells.iter().all(|cell| tail(cell).is_some());
        let tails: Vec<_> = tails.into_iter().filter(known).collect();
        tails.iter().for_each(|(name, _)| text += &format!(",{of}{name}"));
        let is_matrix = self.is_matrix();
        text += if is_matrix { "\n" } else { ",missed\n" };
        for cell in &self.cells {
            let Cell { write_bandwidth, read_iops, p50_us, p95_us, .. } = cell;
            let (p50, p95, clipped) = (p50_us / 1e3, p95_us / 1e3, u8::from(cell.clipped));
            text += &format!("{write_bandwidth},{read_iops},{p50},{p95},{clipped}");
            for us in tails.iter().filter_map(|(_, tail)| tail(cell)) {
                text += &format!(",{}", us / 1e3);
            }
            text += if is_matrix { "\n" } else { ",0\n" };
        }
        for (write, read) in &self.missed {
            text += &format!("{write},{read},,,{}", ",".repeat(tails.len()));
            text += if is_matrix { "\n" } else { ",1\n" };
        }
        text
    }
}

/// Which column stands where in a line.
struct Header<'a> {
    separator: char,
    names: Vec<&'a str>,
    /// By place the column, and by what its figures are multiplied; none that is skipped.
    columns: Vec<Option<(usize, f64)>>,
    /// Whether latencies are those of writes.
    is_of_writes: bool,
    axes: Axes,
}

impl<'a> Header<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let separator = SEPARATORS.into_iter().find(|&separator| text.contains(separator));
        let separator = separator.unwrap_or(SEPARATORS[0]);
        let names: Vec<&str> = fields(text, separator).collect();
        // the index of a table has no name
        let is_index = |place: usize, name: &str| place == 0 && name.is_empty();
        let wrong = |what: &str| format!("the first line is `{}`; {FORMS}{what}", quoted(text));
        let mut columns = Vec::new();
        let of_writes = |name: &&str| name.strip_prefix(OF_WRITES).is_some_and(is_latency);
        let is_of_writes = names.iter().any(of_writes);
        for (place, name) in names.iter().enumerate() {
            // one kind of latencies: those without the prefix are then unknown columns
            let column = match name.strip_prefix(OF_WRITES).filter(|rest| is_latency(rest)) {
                Some(rest) => column(rest),
                None => column(name).filter(|_| !is_of_writes || !is_latency(name)),
            };
            if column.is_none() && !is_index(place, name) {
                return Err(wrong(&format!("; there is no column `{}`", quoted(name))));
            }
            columns.push(column);
        }
        let given = |wanted: usize| {
            columns.iter().flatten().filter(|&&(column, _)| column == wanted).count()
        };
        if let Some(missing) = (0..REQUIRED).find(|&column| given(column) == 0) {
            return Err(wrong(&format!("; a column `{}` is missing", COLUMNS[missing].0[0])));
        }
        if let Some(twice) = (0..COLUMNS.len()).find(|&column| given(column) > 1) {
            return Err(wrong(&format!("; there are two columns `{}`", COLUMNS[twice].0[0])));
        }
        let has = |axes: Axes| axes.columns().map(|column| names.contains(&column));
        let axes = match (has(Axes::Sizes), has(Axes::LargeReads)) {
            ([true, true], _) => Axes::Sizes,
            ([false, false], [true, _]) => Axes::LargeReads,
            ([false, false], [false, _]) => Axes::Rates,
            _ => return Err(wrong("; `write_bytes` and `read_bytes` go together")),
        };
        Ok(Self { separator, names, columns, is_of_writes, axes })
    }

    /// Where a column stands.
    fn place(&self, wanted: usize) -> Option<usize> {
        self.columns.iter().position(|column| column.is_some_and(|(column, _)| column == wanted))
    }

    /// Whether a line has a comma that does not stand before thousands.
    fn shows_decimal_comma(&self, line: &str) -> bool {
        self.separator != ',' && fields(line, self.separator).any(is_decimal_comma)
    }
}

/// The figures or names of a line.
fn fields(line: &str, separator: char) -> impl Iterator<Item = &str> {
    line.split(separator).map(|field| {
        let field = field.trim();
        let inside = field.strip_prefix('"').and_then(|field| field.strip_suffix('"'));
        inside.map_or(field, str::trim)
    })
}

/// The column of this name, and by what its figures are multiplied.
fn column(name: &str) -> Option<(usize, f64)> {
    if let Some(column) = COLUMNS.iter().position(|(known, _)| known.contains(&name)) {
        return Some((column, 1.0));
    }
    let (unit, scale) = UNITS.into_iter().find(|(unit, _)| name.ends_with(unit))?;
    let stem = name.strip_suffix(unit)?;
    let is_it = |column: &usize| COLUMNS[*column].0[0].strip_suffix("ms") == Some(stem);
    LATENCIES.into_iter().find(is_it).map(|column| (column, scale))
}

/// Whether it is the name of a column of latencies.
fn is_latency(name: &str) -> bool {
    column(name).is_some_and(|(column, _)| LATENCIES.contains(&column))
}

/// `0,095` and `12,5`, and not `400,000`.
fn is_decimal_comma(field: &str) -> bool {
    let Some((whole, rest)) = field.split_once(',') else { return false };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole) && are_digits(rest) && (whole == "0" || rest.len() != 3)
}

fn is_nothing(field: &str) -> bool {
    NOTHING.contains(&field.to_ascii_lowercase().as_str())
}

/// A line of a file.
struct Line<'a> {
    file: &'a str,
    number: u64,
    header: &'a Header<'a>,
    has_decimal_commas: bool,
}

impl Line<'_> {
    /// The load, and what was measured under it if the disk carried it.
    fn parse(&self, text: &str) -> Result<((f64, f64), Option<Cell>), ConfigError> {
        let Header { separator, names, columns, .. } = self.header;
        let fields: Vec<&str> = fields(text, *separator).collect();
        if fields.len() > names.len() {
            let message = format!("more than {} figures; remove some", names.len());
            return Err(self.error(None, &message));
        }
        let of = |wanted| self.header.place(wanted);
        let is_empty = |place: usize| fields.get(place).is_some_and(|field| is_nothing(field));
        let missed = LATENCIES.iter().filter_map(|&column| of(column)).all(is_empty);
        let mut figures = [None; COLUMNS.len()];
        for (place, column) in columns.iter().enumerate() {
            let Some((column, scale)) = *column else { continue };
            if column < 2 || !missed {
                let field = fields.get(place).copied().unwrap_or_default();
                figures[column] = Some(self.figure(place, field, COLUMNS[column].1, scale)?);
            }
        }
        let [write, read, p50, p95, clipped, p99, p999, missed] = figures;
        let at = (write.unwrap_or_default(), read.unwrap_or_default());
        if missed.is_some_and(|missed| missed != 0.0) {
            return Ok((at, None));
        }
        let (Some(p50), Some(p95)) = (p50, p95) else { return Ok((at, None)) };
        if p50 <= 0.0 {
            return Err(self.error(of(2), "a latency of 0; expected more"));
        }
        let mut last = (p50, "the median");
        for (column, next) in [(3, Some(p95)), (5, p99), (6, p999)] {
            let Some(next) = next else { continue };
            if next < last.0 {
                let (below, name) = last;
                let message = format!("{next} is below {name}, {below}; expected at least as much");
                return Err(self.error(of(column), &message));
            }
            last = (next, COLUMNS[column].0[0]);
        }
        let cell = Cell {
            write_bandwidth: at.0,
            read_iops: at.1,
            p50_us: p50 * 1e3,
            p95_us: p95 * 1e3,
            p99_us: p99.map(|p99| p99 * 1e3),
            p999_us: p999.map(|p999| p999 * 1e3),
            clipped: clipped.is_some_and(|clipped| clipped != 0.0),
        };
        Ok((at, Some(cell)))
    }

    /// The figure in a field, from 0 to `max` after it was multiplied by `scale`.
    fn figure(&self, place: usize, field: &str, max: f64, scale: f64) -> Result<f64, ConfigError> {
        let number = self.with_point(place, field)?;
        let value: Option<f64> = number.parse().ok();
        let value = value.map(|value: f64| value * scale);
        let value = value.filter(|value| (0.0..=max).contains(value)).ok_or_else(|| {
            let (max, found) = (max / scale, quoted(field));
            self.error(Some(place), &format!("found `{found}`; expected a number from 0 to {max}"))
        })?;
        // a negative zero becomes a zero
        Ok(value + 0.0)
    }

    /// A figure with a point for its decimal comma. A comma must not be one of thousands.
    fn with_point<'f>(&self, place: usize, field: &'f str) -> Result<Cow<'f, str>, ConfigError> {
        let is_rate =
            self.header.columns.get(place).copied().flatten().is_some_and(|(at, _)| at < 2);
        match (field.contains(','), field.contains('.') && self.has_decimal_commas) {
            (false, false) => Ok(Cow::Borrowed(field)),
            (true, false) if self.has_decimal_commas && (!is_rate || is_decimal_comma(field)) => {
                Ok(Cow::Owned(field.replacen(',', ".", 1)))
            }
            _ => {
                let message = format!(
                    "in `{}` it is not clear which mark stands before decimals and which before \
                     thousands; write decimals with a point, and no mark before thousands",
                    quoted(field)
                );
                Err(self.error(Some(place), &message))
            }
        }
    }

    fn error(&self, place: Option<usize>, message: &str) -> ConfigError {
        let name = place.and_then(|place| self.header.names.get(place).copied());
        error(self.file, self.number, name, message)
    }
}

/// The combinations of the loads along both axes that have no cell.
fn absent(file: &str, cells: &[Cell]) -> Result<Vec<(f64, f64)>, ConfigError> {
    let writes = sorted(cells.iter().map(|cell| cell.write_bandwidth));
    let reads = sorted(cells.iter().map(|cell| cell.read_iops));
    if writes.len().max(reads.len()) > AXIS_MAX {
        let message = format!(
            "more than {AXIS_MAX} different loads along an axis are no matrix; give the loads that \
             were missed as lines with empty latencies"
        );
        return Err(ConfigError::whole_file(file, message));
    }
    let all = writes.iter().flat_map(|&write| reads.iter().map(move |&read| (write, read)));
    Ok(all.filter(|&wanted| cells.iter().all(|cell| load(cell) != wanted)).collect())
}

pub(super) fn quoted(text: &str) -> String {
    let text: String = text.chars().take(QUOTED_MAX).collect();
    text.escape_debug().to_string()
}

fn error(file: &str, line: u64, name: Option<&str>, message: &str) -> ConfigError {
    ConfigError::at(file, Position { line, column: 1 }, name.map(str::to_owned), message)
}
