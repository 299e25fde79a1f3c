//! An endpoint that serves a scheduler's metrics to many clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use forebay::metrics::{Endpoint, EndpointConfig, open_metrics};
use forebay::{Op, Scheduler};

/// The long form is the example `scrape_storm`.
#[test]
fn a_storm_of_good_and_bad_clients_fails_no_scrape() {
    let scheduler = Scheduler::builder().build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let observed = scheduler.clone();
    let config = EndpointConfig {
        address: ([127, 0, 0, 1], 0).into(),
        timeout: Duration::from_secs(600),
        ..EndpointConfig::default()
    };
    let endpoint = Endpoint::start(&config, move || open_metrics(observed.snapshot())).unwrap();
    let over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                drop(class.admit(Op::Read, 4096).unwrap());
            }
        });
        let seen = crate::storm::storm(endpoint.address(), 1_000, 1_000);
        over.store(true, Ordering::Relaxed);
        seen
    });
    assert_eq!((seen.scrapes, seen.failures), (1_000, 0), "{seen:?}");
    assert!(seen.bad > 0 && !seen.longest.is_zero());
}
