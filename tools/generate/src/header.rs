//! The header of the C API.

use std::collections::BTreeMap;
use std::path::Path;

use cbindgen::{Builder, Config};

use crate::files::Generated;

const CRATE: &str = "crates/forebay-capi";

/// What the sources of the crate declare.
pub(crate) fn generated(root: &Path) -> Result<Generated, String> {
    let folder = root.join(CRATE);
    let config = Config::from_file(folder.join("cbindgen.toml"))?;
    // Its sources alone, without asking cargo for the crates below it.
    let builder = Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut text = Vec::new();
    let bindings = builder.generate().map_err(|error| format!("{CRATE}: {error}"))?;
    bindings.write(&mut text);
    let contents = BTreeMap::from([(format!("{CRATE}/include/forebay.h"), text)]);
    Ok(Generated { contents, folders: &[] })
}
