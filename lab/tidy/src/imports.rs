//! Which file imports from which.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use crate::sources::Source;
use crate::strip::without_tests;
use crate::words::{is_name, places};

/// How often a name is followed from one re-export to the next.
const REEXPORTS_MAX: usize = 8;

type Path = Vec<String>;

/// The imports among the files of a crate; what is for tests is left out.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    modules: BTreeMap<Path, Module>,
    /// For each file those that it imports from.
    pub imports: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Clone, Debug, Default)]
struct Module {
    file: String,
    /// Paths that it names.
    uses: Vec<Path>,
    /// What it hands on from elsewhere, by name.
    reexports: BTreeMap<String, Path>,
}

impl Graph {
    /// The graph of the files below `src`.
    pub fn new(sources: &[Source]) -> Self {
        let is_test = |path: &Path| path.iter().any(|name| name.ends_with("tests"));
        let mut graph = Self::default();
        for source in sources {
            let path = module_of(&source.path);
            if !is_test(&path) {
                graph.modules.insert(path, Module::new(source));
            }
        }
        for (path, module) in &graph.modules {
            let files = module.uses.iter().filter_map(|used| graph.file_of(path, used, 0));
            let files = files.filter(|file| *file != module.file).collect();
            graph.imports.insert(module.file.clone(), files);
        }
        graph
    }

    /// The file in which what `used` names is defined, as seen from the module `from`.
    fn file_of(&self, from: &Path, used: &Path, depth: usize) -> Option<String> {
        let mut path: Path = match used.first()?.as_str() {
            "crate" => Path::new(),
            "self" | "super" => from.clone(),
            first => {
                // a module below, for all others are crates
                let child = [from.as_slice(), &[first.to_owned()]].concat();
                self.modules.contains_key(&child).then(|| from.clone())?
            }
        };
        let up = used.iter().filter(|name| *name == "super").count();
        path.truncate(path.len().saturating_sub(up));
        let is_start = |name: &&String| matches!(name.as_str(), "crate" | "self" | "super");
        let mut names = used.iter().skip_while(is_start).peekable();
        while let Some(&name) = names.peek() {
            let child = [path.as_slice(), slice::from_ref(name)].concat();
            if !self.modules.contains_key(&child) {
                break;
            }
            path = child;
            names.next();
        }
        let module = self.modules.get(&path)?;
        match names.next().and_then(|item| module.reexports.get(item)) {
            Some(elsewhere) if depth < REEXPORTS_MAX => self.file_of(&path, elsewhere, depth + 1),
            _ => Some(module.file.clone()),
        }
    }

    /// Files from which imports lead back to them.
    pub fn circular(&self) -> BTreeSet<String> {
        self.imports.keys().filter(|file| self.reached(file).contains(*file)).cloned().collect()
    }

    fn reached(&self, from: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&str> = vec![from];
        while let Some(file) = next.pop() {
            for import in self.imports.get(file).into_iter().flatten() {
                if reached.insert(import.clone()) {
                    next.push(import);
                }
            }
        }
        reached
    }
}

/// The path of the module that is in this file.
fn module_of(file: &str) -> Path {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let path = if matches!(path, "lib" | "main" | "mod") { "" } else { path };
    path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl Module {
    fn new(source: &Source) -> Self {
        let mut module = Self { file: source.path.clone(), ..Self::default() };
        let mut code = without_tests(&source.code);
        let statements: Vec<usize> = places(&code, "use").collect();
        for at in statements.into_iter().rev() {
            let end = code[at..].find(';').map_or(code.len(), |end| at + end);
            let before = code[..at].trim_end();
            if before.ends_with("impl") || before.ends_with('>') {
                // which lifetimes and types an `impl` captures
                continue;
            }
            let is_public = before
                .rsplit(['\n', ';'])
                .next()
                .is_some_and(|line| line.trim().starts_with("pub"));
            let mut paths = Vec::new();
            expand(&Path::new(), &code[at + 3..end], &mut paths);
            for (name, path) in paths {
                match is_public {
                    true => drop(module.reexports.insert(name, path)),
                    false => module.uses.push(path),
                }
            }
            code.replace_range(at..end, "");
        }
        for first in ["crate", "super", "self"] {
            module.uses.extend(places(&code, first).filter_map(|at| path_at(&code, at)));
        }
        module
    }
}

/// The paths of `use` after `prefix`, each with the name that it gets.
fn expand(prefix: &Path, tree: &str, paths: &mut Vec<(String, Path)>) {
    let tree = tree.trim();
    let Some((head, list)) = tree.split_once('{') else {
        let (path, name) =
            tree.split_once(" as ").map_or((tree, None), |(path, name)| (path, Some(name)));
        let mut path = joined(prefix, path);
        if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
            path.pop();
        }
        let name = name.map(|name| name.trim().to_owned()).or_else(|| path.last().cloned());
        paths.extend(name.map(|name| (name, path)));
        return;
    };
    let prefix = joined(prefix, head);
    let list = list.trim_end().strip_suffix('}').unwrap_or(list);
    let (mut depth, mut from) = (0, 0);
    for (at, character) in list.char_indices().chain([(list.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !list[from..at].trim().is_empty() {
                    expand(&prefix, &list[from..at], paths);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

fn joined(prefix: &Path, path: &str) -> Path {
    let names = path.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    prefix.iter().cloned().chain(names).collect()
}

/// The path that begins at `at`, unless it is only one word, or says how far something is visible.
fn path_at(code: &str, at: usize) -> Option<Path> {
    let is_path = |c: char| is_name(c) || c == ':';
    let text = &code[at..];
    let text = &text[..text.find(|c| !is_path(c)).unwrap_or(text.len())];
    let is_whole = !code[..at].ends_with("::") && !code[..at].ends_with("in ");
    (text.contains("::") && is_whole).then(|| joined(&Path::new(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let source = |&(path, code): &(&str, &str)| Source {
            path: path.to_owned(),
            lines: 0,
            code: code.to_owned(),
        };
        Graph::new(&files.iter().map(source).collect::<Vec<_>>())
    }

    fn imports(graph: &Graph, file: &str) -> Vec<String> {
        graph.imports[file].iter().cloned().collect()
    }

    #[test]
    fn imports_lead_to_the_files_that_define_what_is_imported() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b; pub use a::One;"),
            ("a/mod.rs", "mod c; pub(crate) use c::{One, Two as Deux}; struct Here;"),
            ("a/c.rs", "use super::Here; use std::fmt;"),
            ("b.rs", "use crate::{One, a::{self, Deux}}; fn f() { crate::a::c::g(); }"),
        ]);
        assert!(imports(&graph, "lib.rs").is_empty());
        assert_eq!(imports(&graph, "a/c.rs"), ["a/mod.rs"]);
        assert_eq!(imports(&graph, "b.rs"), ["a/c.rs", "a/mod.rs"]);
        assert!(graph.circular().is_empty());
    }

    #[test]
    fn a_circle_is_found_and_tests_make_none() {
        let test = "#[cfg(test)]\nmod tests { use crate::b::B; }";
        let files = [("lib.rs", ""), ("a.rs", test), ("b.rs", "use crate::a::A; struct B;")];
        assert!(graph(&files).circular().is_empty());
        let files = [
            ("lib.rs", ""),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use super::c::C;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "use crate::a::A;"),
        ];
        let circular: Vec<String> = graph(&files).circular().into_iter().collect();
        assert_eq!(circular, ["a.rs", "b.rs", "c.rs"]);
    }
}
