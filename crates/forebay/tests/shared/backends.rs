//! The same test on several backends of the engine.

#[path = "skipped.rs"]
mod skipped;

use forebay::engine::{BackendChoice, Engine, EngineConfig};

pub(crate) use skipped::skipped;

/// Makes a test for each backend named, of functions that take the choice.
macro_rules! tests_of {
    ($($backend:ident $module:ident),+; $($name:ident),+ $(,)?) => {
        tests_of!(@each [$($backend $module),+] [$($name),+]);
    };
    (@each [$($backend:ident $module:ident),+] $names:tt) => {
        $(tests_of!(@module $backend $module $names);)+
    };
    (@module $backend:ident $module:ident [$($name:ident),+]) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    let choice = forebay::engine::BackendChoice::$backend;
                    if crate::backends::is_available(choice) {
                        super::$name(choice);
                    }
                }
            )+
        }
    };
}

/// Says so and returns false where the kernel forbids it.
pub(crate) fn is_available(backend: BackendChoice) -> bool {
    match Engine::new(&EngineConfig { backend, ..EngineConfig::default() }) {
        Ok(_) => true,
        Err(error) => {
            skipped(error);
            false
        }
    }
}
