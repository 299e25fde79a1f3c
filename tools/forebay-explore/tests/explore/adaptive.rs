//! Few loads, and the region that all of them give.

use std::collections::BTreeMap;
use std::convert::Infallible;

use forebay_explore::{Fit, Goal, Matrix, SimulatedDisk, adaptive, adaptive_cells_max, fit};
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::{Cell, Grid};

use crate::{apart, surface, synthetic};

/// A region of fewer loads than this is no larger than what a step of the matrix leaves open.
const SAFE_MIN: usize = 40;

/// Where the unsafe and rejected parts of the region of all loads are more than this together, none
/// describes the disk, and there is nothing to be found again.
const WRONG_MAX: f64 = 0.2;

/// The loads of a surface, by their bits.
fn answers(surface: &Grid) -> BTreeMap<(u64, u64), Cell> {
    let key = |cell: &Cell| (cell.write_bandwidth.to_bits(), cell.read_iops.to_bits());
    surface.cells().iter().map(|cell| (key(cell), *cell)).collect()
}

/// Searches a surface that was measured as a whole; with how many loads asked for.
fn searched(full: &Grid, goals: &[Goal]) -> (Grid, u32) {
    let (answers, mut asked) = (answers(full), 0);
    let found = adaptive(&Matrix::of(full), goals, |(write, read)| {
        asked += 1;
        Ok::<_, Infallible>(answers.get(&(write.to_bits(), read.to_bits())).copied())
    });
    (found.unwrap(), asked)
}

/// The area that only one of the regions has, of few loads and of all, for each goal whose region
/// is large enough to be compared.
fn off(name: &str, full: &Grid, goals: &[&str]) -> Vec<(Goal, f64)> {
    let goals: Vec<Goal> = goals.iter().map(|goal| goal.parse().unwrap()).collect();
    let (few, asked) = searched(full, &goals);
    let cells = Matrix::of(full).cells();
    assert!(asked * 6 <= cells, "{name}: {asked} of {cells} loads");
    let mut all = Vec::new();
    for goal in goals {
        let keeps = |cell: &&Cell| {
            cell.read_iops > 0.0 && goal.percentile.of(cell).unwrap() <= goal.latency_us
        };
        let safe = full.cells().iter().filter(keeps).count();
        let (Ok(of_all), Ok(of_few)) = (fit(full, goal), fit(&few, goal)) else {
            println!("{name} {goal}: {safe} loads keep it, and nothing fits");
            assert!(safe < SAFE_MIN, "{name} {goal}");
            continue;
        };
        let radius = |fit: &Fit, part| fit.shape.radius(part);
        let off = apart(|part| radius(&of_all, part), |part| radius(&of_few, part));
        let wrong = of_all.quality.sum();
        println!(
            "{name} {goal}: {asked} of {cells} loads, {safe} keep it, area off by {off:.3}; that of \
             all is wrong by {wrong:.3}"
        );
        if safe >= SAFE_MIN && wrong <= WRONG_MAX {
            all.push((goal, off));
        }
    }
    all
}

#[test]
fn a_sixth_of_the_loads_gives_the_region_of_all() {
    let goals = ["p95=500us", "p95=1ms", "p95=2ms"];
    let mut compared = 0;
    for (name, full) in [
        ("i3.2xlarge", surface("i3.2xlarge")),
        ("i3en.3xlarge", surface("i3en.3xlarge")),
        ("p = 0.4", synthetic::surface(0.4, 20)),
        ("p = 1", synthetic::surface(1.0, 20)),
        ("p = 2", synthetic::surface(2.0, 20)),
        ("p = 20", synthetic::surface(20.0, 20)),
    ] {
        for (goal, off) in off(name, &full, &goals) {
            assert!(off <= 0.1, "{name} {goal}: {off}");
            compared += 1;
        }
    }
    assert!(compared >= 12, "{compared} regions were compared");
}

#[test]
#[ignore = "some three minutes with --release"]
fn a_sixth_of_the_loads_of_every_simulated_disk_gives_the_region_of_all() {
    let mut all = Vec::new();
    for name in DiskSpec::presets() {
        let mut disk = SimulatedDisk::new(DiskSpec::resolve(name).unwrap());
        let matrix = Matrix::even(disk.rates(), 20);
        let full = matrix.full(|at| Ok::<_, Infallible>(disk.measure(at))).unwrap();
        all.extend(off(name, &full, &["p95=500us", "p95=1ms", "p95=2ms"]));
    }
    let within = all.iter().filter(|(_, off)| *off <= 0.1).count();
    println!("{within} of {} regions within 10 %", all.len());
    assert!(within * 10 >= all.len() * 9, "{all:?}");
    assert!(all.iter().all(|(_, off)| *off <= 0.2), "{all:?}");
}

#[test]
fn a_goal_that_nothing_keeps_leaves_its_loads_to_the_others() {
    for exponent in [0.4, 1.0, 2.0, 20.0] {
        let full = synthetic::surface(exponent, 20);
        let goals = ["p95=1ms", "p95=150us"].map(|goal| goal.parse().unwrap());
        let (_, alone) = searched(&full, &goals[..1]);
        let (_, asked) = searched(&full, &goals);
        println!("p = {exponent}: {alone} loads, {asked} alongside a goal that nothing keeps");
        // five rays that come inwards to the origin, some over loads that are known
        assert!(asked <= alone + 15, "p = {exponent}: {asked} and {alone}");
    }
}

#[test]
fn an_interrupted_search_asks_for_the_same_loads_again() {
    let full = surface("i3.2xlarge");
    let (matrix, answers) = (Matrix::of(&full), answers(&full));
    let goals = ["p95=1ms".parse().unwrap()];
    let ask = |most: usize| {
        let mut asked = Vec::new();
        let found = adaptive(&matrix, &goals, |(write, read)| {
            if asked.len() == most {
                return Err(());
            }
            asked.push((write, read));
            Ok(answers.get(&(write.to_bits(), read.to_bits())).copied())
        });
        (asked, found.is_ok())
    };
    let (all, complete) = ask(usize::MAX);
    assert!(complete);
    for most in [0, 1, 10, all.len() - 1] {
        assert_eq!(ask(most), (all[..most].to_vec(), false));
    }
}

/// Whatever is answered, the search comes to an end within its bound.
#[test]
fn a_disk_that_keeps_no_goal_or_every_goal_is_searched_within_the_bound() {
    let goals = ["p95=500us", "p95=1ms", "p99=2ms"].map(|goal| goal.parse().unwrap());
    for steps in [1, 2, 5, 20, 31] {
        let matrix = Matrix::even((1e9, 1e5), steps);
        let mut random = 1_u64;
        for mode in 0..4 {
            let mut asked = 0;
            let found = adaptive(&matrix, &goals, |(write_bandwidth, read_iops)| {
                asked += 1;
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let latency = [100.0, 1e6, (random >> 40) as f64, 0.0][mode];
                let cell = Cell {
                    write_bandwidth,
                    read_iops,
                    p50_us: latency,
                    p95_us: latency,
                    p99_us: Some(latency),
                    p999_us: Some(latency),
                    clipped: false,
                };
                Ok::<_, Infallible>((mode < 3).then_some(cell))
            });
            let found = found.unwrap();
            assert_eq!(found.loads().count() as u32, asked, "none is asked for twice");
            assert!(asked <= adaptive_cells_max(&matrix), "{steps} steps: {asked}");
            assert_eq!(found.missed().is_empty(), mode < 3);
        }
    }
}
