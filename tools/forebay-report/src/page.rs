//! Pages of HTML that need nothing alongside them.

use core::fmt::Display;

use crate::table::Table;

/// How every page begins; phones show it as wide as they are.
const BEGIN: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width\">";
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;\
padding:0 1rem;color:#1b1b1b}h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem}\
p,ul{max-width:54rem}table{border-collapse:collapse;margin:1rem 0;font-size:.9rem}\
caption{text-align:left;font-weight:600;padding-bottom:.3rem}th,td{padding:.2rem .7rem;\
border-bottom:1px solid #ddd;text-align:right}th:first-child,td:first-child{text-align:left}\
li{margin:.3rem 0}li.warns{font-weight:600}.about{color:#555;font-size:.9rem}\
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr));gap:1rem}\
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:.6rem;margin:1rem 0}\
.tile{display:block;border:1px solid #ddd;border-radius:.4rem;padding:.5rem .7rem;color:inherit;\
text-decoration:none;font-size:.85rem;line-height:1.3}.tile b{display:block;font-size:1.4rem}\
.bar{display:flex;height:.5rem;margin-top:.4rem;gap:1px}.bar i{min-width:2px}.part0{background:#1565c0}\
.part1{background:#f9a825}.part2{background:#c62828}.part3{background:#78909c}.part4{background:#a9b8bf}\
.part5{background:#d5dde0}pre{overflow-x:auto;font-size:.85rem}figure{margin:0}svg{max-width:100%;height:auto}nav a{margin-right:.8rem}\
@media screen and (prefers-color-scheme:dark){body{background:#16181b;color:#ddd}\
th,td,.tile{border-color:#444}.about{color:#aaa}a{color:#8ab4f8}}";

/// A figure that stands out, what it is of, and a bar of the parts that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// The figure.
    pub figure: String,
    /// What it is of.
    pub label: String,
    /// The section that it leads to.
    pub id: Option<String>,
    /// Names and sizes of up to six parts; each place has a colour.
    pub parts: Vec<(&'static str, usize)>,
}

/// A page that is being written; texts are escaped.
#[derive(Clone, Debug)]
pub struct Page {
    html: String,
}

impl Page {
    /// A page without content.
    pub fn new(title: &str) -> Self {
        let title = escaped(title);
        Self { html: format!("{BEGIN}<title>{title}</title><style>{STYLE}</style></head><body>\n") }
    }

    fn push(&mut self, html: impl Display) {
        self.html += &format!("{html}\n");
    }

    /// Adds a heading of the page.
    pub fn title(&mut self, text: &str) {
        self.push(format_args!("<h1>{}</h1>", escaped(text)));
    }

    /// Adds a heading of a section, to which links lead by `id`.
    pub fn heading(&mut self, id: &str, text: &str) {
        self.push(format_args!("<h2 id=\"{}\">{}</h2>", escaped(id), escaped(text)));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.push(format_args!("<p>{}</p>", escaped(text)));
    }

    /// Adds text that is laid out in columns, as on a terminal.
    pub fn preformatted(&mut self, text: &str) {
        self.push(format_args!("<pre>{}</pre>", escaped(text)));
    }

    /// Adds a paragraph about how something was made.
    pub fn about(&mut self, text: &str) {
        self.push(format_args!("<p class=\"about\">{}</p>", escaped(text)));
    }

    /// Adds links to sections by their ids.
    pub fn links<'a>(&mut self, ids: impl Iterator<Item = &'a str>) {
        let link = |id: &str| format!("<a href=\"#{0}\">{0}</a>\n", escaped(id));
        let links: String = ids.map(link).collect();
        self.push(format_args!("<nav>{links}</nav>"));
    }

    /// Adds a list; entries that warn stand out.
    pub fn list<'a>(&mut self, entries: impl Iterator<Item = (&'a str, bool)>) {
        let entry = |(text, warns): (&str, bool)| {
            let class = if warns { " class=\"warns\"" } else { "" };
            format!("<li{class}>{}</li>\n", escaped(text))
        };
        let entries: String = entries.map(entry).collect();
        self.push(format_args!("<ul>{entries}</ul>"));
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        let row = |cells: &[String], tag: &str| {
            let cell = |cell: &String| format!("<{tag}>{}</{tag}>", escaped(cell));
            format!("<tr>{}</tr>\n", cells.iter().map(cell).collect::<String>())
        };
        let rows: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
        let (title, head) = (escaped(&table.title), row(&table.columns, "th"));
        self.push(format_args!("<table><caption>{title}</caption>{head}{rows}</table>"));
    }

    /// Adds tiles, as many side by side as there is room for.
    pub fn tiles(&mut self, tiles: impl IntoIterator<Item = Tile>) {
        let tile = |Tile { figure, label, id, parts }: Tile| {
            let part = |(place, (name, size)): (usize, (&str, usize))| {
                let name = escaped(name);
                format!(
                    "<i class=\"part{place}\" style=\"flex:{size}\" title=\"{name}: {size}\"></i>"
                )
            };
            let shown = parts.into_iter().enumerate().filter(|(_, (_, size))| *size > 0);
            let bar: String = shown.map(part).collect();
            let link = id.map_or_else(String::new, |id| format!(" href=\"#{}\"", escaped(&id)));
            let (figure, label) = (escaped(&figure), escaped(&label));
            let text = format!("<b>{figure}</b>{label}<span class=\"bar\">{bar}</span>");
            format!("<a class=\"tile\"{link}>{text}</a>\n")
        };
        let tiles: String = tiles.into_iter().map(tile).collect();
        self.push(format_args!("<div class=\"tiles\">{tiles}</div>"));
    }

    /// Adds charts, drawn as SVG, side by side where there is room.
    pub fn charts(&mut self, drawn: &[String]) {
        let figures: String = drawn.iter().map(|svg| format!("<figure>{svg}</figure>\n")).collect();
        self.push(format_args!("<div class=\"charts\">{figures}</div>"));
    }

    /// Adds JSON for programs that read the page; it is not shown.
    pub fn json(&mut self, id: &str, json: &str) {
        // in a string a slash may be written so, and outside of strings JSON has no `<`
        let json = json.replace("</", "<\\/").replace("<!--", "<\\u0021--");
        let id = escaped(id);
        self.push(format_args!("<script type=\"application/json\" id=\"{id}\">{json}</script>"));
    }

    /// The page as HTML.
    pub fn finish(self) -> String {
        self.html + "</body></html>\n"
    }
}

/// Text as it stands on a page.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_and_its_texts_are_escaped() {
        let mut page = Page::new("a < b");
        page.heading("x", "x & y");
        let mut table = Table::new("t", &["", "<"]);
        table.row(["1".into(), "\"".into()]);
        page.table(&table);
        page.preformatted("a  <b");
        let parts = vec![("met", 3), ("off", 0), ("<", 1)];
        page.tiles([Tile {
            figure: "3 of 4".into(),
            label: "a&b".into(),
            id: Some("x".into()),
            parts,
        }]);
        page.json("j", "{\"a\": \"</script><!--\"}");
        let html = page.finish();
        let bar = r#"<i class="part0" style="flex:3" title="met: 3"></i><i class="part2""#;
        let tile =
            format!(r##"<a class="tile" href="#x"><b>3 of 4</b>a&amp;b<span class="bar">{bar}"##);
        assert!(html.contains(&tile) && html.contains("&lt;: 1"), "{html}");
        assert!(html.contains(r#"{"a": "<\/script><\u0021--"}</script>"#), "{html}");
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</body></html>\n"));
        for part in
            ["<title>a &lt; b", "x &amp; y", "<th>&lt;</th>", "<td>&quot;</td>", "<pre>a  &lt;b"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
