//! Of a run with more jobs than a chart has room for, those that did most.

use std::borrow::Cow;

use forebay_load::results::series::Series;

/// This many lines are told apart in a chart.
pub(super) const LINES_MAX: usize = 16;

/// The run with the jobs that moved most bytes, and with the classes that had most disk time, in
/// the order they had.
pub(super) fn busiest(series: &Series) -> Cow<'_, Series> {
    if series.jobs.len() <= LINES_MAX && series.classes.len() <= LINES_MAX {
        return Cow::Borrowed(series);
    }
    let mut series = series.clone();
    keep_most(&mut series.jobs, |job| &job.bandwidth_bytes_per_second);
    keep_most(&mut series.classes, |class| &class.consumption);
    Cow::Owned(series)
}

fn keep_most<T>(all: &mut Vec<T>, of: fn(&T) -> &Vec<f64>) {
    let sum = |one: &T| of(one).iter().sum::<f64>();
    let mut order: Vec<usize> = (0..all.len()).collect();
    // the earlier one stays where two did as much
    order.sort_by(|&one, &other| sum(&all[other]).total_cmp(&sum(&all[one])));
    let mut stays = vec![false; all.len()];
    order.iter().take(LINES_MAX).for_each(|&place| stays[place] = true);
    let mut stays = stays.into_iter();
    all.retain(|_| stays.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use forebay_load::results::series::JobSeries;

    use super::*;

    #[test]
    fn of_a_thousand_jobs_those_that_did_most_are_drawn_in_their_order() {
        let job = |place: usize| JobSeries {
            name: place.to_string(),
            bandwidth_bytes_per_second: vec![(place * 7 % 1000) as f64],
            ..JobSeries::default()
        };
        let all = Series { jobs: (0..1000).map(job).collect(), ..Series::default() };
        let kept = busiest(&all);
        let rates: Vec<f64> =
            kept.jobs.iter().map(|job| job.bandwidth_bytes_per_second[0]).collect();
        assert_eq!(rates.len(), LINES_MAX);
        assert!(rates.iter().all(|rate| *rate >= 984.0), "{rates:?}");
        let places: Vec<usize> = kept.jobs.iter().map(|job| job.name.parse().unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}");
        let few = Series { jobs: (0..LINES_MAX).map(job).collect(), ..Series::default() };
        assert_eq!(*busiest(&few), few);
    }
}
