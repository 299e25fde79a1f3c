//! Whatever is in a file: it is read or refused in one line, and what is read can be fitted.

use forebay_explore::fit;
use forebay_sim::surface::Grid;
use proptest::collection::vec;
use proptest::prelude::*;

/// Reads in all ways, and fits what could be read.
fn try_all(text: &str) {
    for read in [Grid::parse_csv("f", text), Grid::parse_fio("f", text.as_bytes())] {
        match read {
            Ok(surface) => {
                let again = Grid::parse_csv("f", &surface.to_csv()).unwrap();
                assert_eq!(again.loads().count(), surface.loads().count(), "{text}");
                for goal in ["p95=1ms", "p99.9=3s"] {
                    let _ = fit(&surface, goal.parse().unwrap());
                }
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}

fn figure() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..4_u32).prop_map(|figure| figure.to_string()),
        (0.0..10.0).prop_map(|figure: f64| figure.to_string()),
        Just(String::from("1e12")),
        Just(String::from("-0")),
        "[-+0-9.einfa]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_text_is_no_panic(text in any::<String>()) {
        try_all(&text);
    }

    #[test]
    fn lines_of_figures_are_no_panic(
        lines in vec(vec(figure(), 2..6).prop_map(|line| line.join(",")), 0..40),
    ) {
        for header in [
            "w_bw_Bps,r_iops,p50_ms,p95_ms,p95_clipped",
            "read_iops,write_bandwidth_bytes_per_sec,p50_ms,p95_ms,p99_ms,p999_ms",
            "r_iops,w_bw_Bps,p50_ms,p95_ms,missed",
        ] {
            try_all(&format!("{header}\n{}", lines.join("\n")));
        }
    }

    /// Whatever was measured where: a region is found, or it is said why not.
    #[test]
    fn any_surface_has_a_region_or_none(
        cells in vec((0..6_u32, 0..6_u32, 0.001..100.0, 1.0..10.0, any::<bool>()), 9..36),
    ) {
        let mut text = String::from("w_bw_Bps,r_iops,p50_ms,p95_ms\n");
        let mut seen = Vec::new();
        for (write, read, p50, times, carried) in cells {
            if !seen.contains(&(write, read)) {
                seen.push((write, read));
                let latencies =
                    if carried { format!("{p50},{}", p50 * times) } else { String::from(",") };
                text += &format!("{write}e6,{read}000,{latencies}\n");
            }
        }
        let surface = Grid::parse_csv("f", &text).unwrap();
        if let Ok(fit) = fit(&surface, "p95=20ms".parse().unwrap()) {
            prop_assert!(fit.quality.sum() <= fit.line.sum());
            prop_assert!(fit.shape.table().iter().all(|&radius| radius > 0));
        }
    }
}
