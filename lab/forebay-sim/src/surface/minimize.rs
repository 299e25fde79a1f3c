//! The downhill simplex of Nelder and Mead.

/// How far the corners of the first simplex are from its first one.
const SPREAD: f64 = 0.25;

/// A point, and the value of the function there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Minimum<const N: usize> {
    pub(super) point: [f64; N],
    pub(super) value: f64,
}

/// A local minimum of `function` near `start`, after at most `steps`
/// evaluations or so. Deterministic.
pub(super) fn minimize<const N: usize>(
    function: impl Fn(&[f64; N]) -> f64,
    start: [f64; N],
    steps: usize,
) -> Minimum<N> {
    let at = |point: [f64; N]| {
        let value = function(&point);
        Minimum { point, value: if value.is_nan() { f64::INFINITY } else { value } }
    };
    // the coefficients of Gao and Han, better than the usual ones in many dimensions
    let n = N as f64;
    let (expand, contract, shrink) = (1.0 + 2.0 / n, 0.75 - 0.5 / n, 1.0 - 1.0 / n);
    let mut corners = vec![at(start)];
    for axis in 0..N {
        let mut point = start;
        point[axis] += SPREAD;
        corners.push(at(point));
    }
    let mut used = corners.len();
    while used < steps {
        corners.sort_by(|a, b| a.value.total_cmp(&b.value));
        let (best, worst, second) = (corners[0], corners[N], corners[N - 1].value);
        let middle = centre(&corners[..N]);
        let towards =
            |by: f64| at(core::array::from_fn(|i| middle[i] + by * (middle[i] - worst.point[i])));
        let reflected = towards(1.0);
        used += 2;
        corners[N] = if reflected.value < best.value {
            let expanded = towards(expand);
            if expanded.value < reflected.value { expanded } else { reflected }
        } else if reflected.value < second {
            reflected
        } else {
            let inside = reflected.value >= worst.value;
            let contracted = towards(if inside { -contract } else { contract });
            if contracted.value < worst.value.min(reflected.value) {
                contracted
            } else {
                for corner in &mut corners[1..] {
                    *corner = at(core::array::from_fn(|i| {
                        best.point[i] + shrink * (corner.point[i] - best.point[i])
                    }));
                }
                used += N;
                continue;
            }
        };
    }
    corners.into_iter().min_by(|a, b| a.value.total_cmp(&b.value)).unwrap_or_else(|| at(start))
}

fn centre<const N: usize>(corners: &[Minimum<N>]) -> [f64; N] {
    let count = corners.len() as f64;
    core::array::from_fn(|axis| {
        corners.iter().map(|corner| corner.point[axis]).sum::<f64>() / count
    })
}
