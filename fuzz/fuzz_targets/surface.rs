//! Any text is refused in one line, or gives a surface that is written and read back, and has a
//! region or none.

#![no_main]

use forebay_explore::fit;
use forebay_sim::surface::Grid;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for read in [Grid::parse_csv("f", text), Grid::parse_fio("f", text.as_bytes())] {
        let surface = match read {
            Ok(surface) => surface,
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                continue;
            }
        };
        let again = Grid::parse_csv("f", &surface.to_csv()).unwrap();
        assert_eq!(again.loads().count(), surface.loads().count(), "{text}");
        if surface.loads().count() <= 64 {
            let _ = fit(&surface, "p95=1ms".parse().unwrap());
        }
    }
});
