//! One self-contained page of all experiments.

use std::fmt::{self, Write as _};

use forebay_sim::experiments::{Experiment, Report, Table};

use crate::svg::{PAGE_BEGIN, escaped};

/// An experiment that was repeated, with its charts drawn.
pub(super) struct Done {
    pub(super) experiment: Experiment,
    pub(super) report: Report,
    pub(super) charts: Vec<String>,
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;\
padding:0 1rem;color:#1b1b1b}h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:3rem;\
border-top:1px solid #ccc;padding-top:1.5rem}table{border-collapse:collapse;margin:1rem 0;\
font-size:.9rem}caption{text-align:left;font-weight:600;padding-bottom:.3rem}th,td{padding:.2rem \
.7rem;border-bottom:1px solid #ddd;text-align:right}th:first-child,td:first-child{text-align:left}\
.about{color:#555;font-size:.9rem}figure{margin:1rem 0}svg{max-width:100%;height:auto}nav a{\
margin-right:.8rem}";

/// The page as HTML; `command` is how to make it again.
///
/// # Errors
/// Never: writing to a string does not fail.
pub(super) fn html(done: &[Done], command: &str) -> Result<String, fmt::Error> {
    let mut page = String::new();
    writeln!(page, "{PAGE_BEGIN}")?;
    writeln!(page, "<title>forebay: published experiments, repeated</title>")?;
    writeln!(page, "<style>{STYLE}</style></head><body>")?;
    writeln!(page, "<h1>Published experiments, repeated</h1>")?;
    writeln!(
        page,
        "<p>Simulated disks under virtual time, the same scheduler as in production. The disks' \
         parameters come from published figures and stand with each experiment. Made by \
         <code>{}</code>.</p><nav>",
        escaped(command)
    )?;
    for Done { experiment, .. } in done {
        writeln!(page, "<a href=\"#{0}\">{0}</a>", escaped(experiment.name))?;
    }
    writeln!(page, "</nav>")?;
    for one in done {
        section(&mut page, one)?;
    }
    writeln!(page, "</body></html>")?;
    Ok(page)
}

fn section(page: &mut String, done: &Done) -> fmt::Result {
    let Done { experiment, report, charts } = done;
    let name = escaped(experiment.name);
    writeln!(page, "<h2 id=\"{name}\">{name}: {}</h2>", escaped(experiment.title))?;
    writeln!(page, "<p>{}</p>", escaped(&report.shows))?;
    for chart in charts {
        writeln!(page, "<figure>{chart}</figure>")?;
    }
    for table in &report.tables {
        write_table(page, table)?;
    }
    if !report.differs.is_empty() {
        writeln!(page, "<p>{}</p>", escaped(&report.differs))?;
    }
    writeln!(page, "<p class=\"about\">Source: {}.", escaped(experiment.source))?;
    for (name, value) in &report.parameters {
        writeln!(page, " {}: {}.", escaped(name), escaped(value))?;
    }
    writeln!(page, "</p>")
}

fn write_table(page: &mut String, table: &Table) -> fmt::Result {
    writeln!(page, "<table><caption>{}</caption><tr>", escaped(&table.title))?;
    for column in &table.columns {
        write!(page, "<th>{}</th>", escaped(column))?;
    }
    writeln!(page, "</tr>")?;
    for row in &table.rows {
        write!(page, "<tr>")?;
        for cell in row {
            write!(page, "<td>{}</td>", escaped(cell))?;
        }
        writeln!(page, "</tr>")?;
    }
    writeln!(page, "</table>")
}
