//! What is in `monitoring/`.

use std::path::PathBuf;

use serde_json::Value;

pub(crate) const ALERTS: &str = "alerts.yml";

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../monitoring").join(name)
}

/// A panel of the dashboard: its title, its description and its queries.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) queries: Vec<String>,
}

/// The panels, with the variables of their queries replaced.
pub(crate) fn panels(rate_interval: &str) -> Vec<Panel> {
    let text = std::fs::read_to_string(path("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let query = |target: &Value| {
        let query = target["expr"].as_str().unwrap().replace("$__rate_interval", rate_interval);
        let query = query.replace("$disk", ".*").replace("$class", ".*");
        assert!(!query.contains('$'), "{query}");
        query
    };
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let panels = panels.filter(|panel| panel["type"] != "row").map(|panel| Panel {
        title: panel["title"].as_str().unwrap().to_owned(),
        description: panel["description"].as_str().unwrap_or_default().to_owned(),
        queries: panel["targets"].as_array().unwrap().iter().map(query).collect(),
    });
    panels.collect()
}

/// The alerts: their names and their expressions.
pub(crate) fn alerts() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path(ALERTS)).unwrap();
    let rules: Value = serde_saphyr::from_str(&text).unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    rules.map(|rule| (text(rule, "alert"), text(rule, "expr"))).collect()
}

#[test]
fn each_panel_says_what_is_healthy() {
    let panels = panels("10s");
    assert!(!panels.is_empty());
    for Panel { title, description, queries } in panels {
        assert!(!description.is_empty() && !queries.is_empty(), "{title}");
    }
}
