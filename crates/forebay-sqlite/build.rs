//! Links the extension so that it is never unloaded: connections use its VFS, and its threads run on.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
