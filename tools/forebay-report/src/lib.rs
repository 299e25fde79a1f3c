//! What is shown to people: text tables, SVG charts, self-contained HTML pages.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod chart;
mod format;
mod heat_map;
mod page;
#[cfg(feature = "svg")]
mod svg;
mod table;
mod text;
mod timeline;
pub mod verdict;

pub use chart::{Chart, Mark, Scale, Series};
pub use format::{percent_of_change, scaled, size};
pub use heat_map::{HeatCell, HeatLine, HeatMap, stacked};
pub use page::{Page, Tile, escaped};
#[cfg(feature = "svg")]
pub use svg::{DrawError, svg};
pub use table::{Table, aligned};
pub use text::{lines_within, paragraph, paragraph_within};
pub use timeline::{Timeline, TimelineRow};
