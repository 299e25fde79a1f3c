use super::*;

/// Ten seconds of a full disk with two classes of equal shares.
fn healthy() -> DiskFigures {
    let class = |name: &str| ClassFigures {
        name: name.to_owned(),
        shares: 100,
        consumption: 0.49,
        waiting: 12.0,
        queue_p99: 0.02,
        disk_p99: 0.001,
        ..ClassFigures::default()
    };
    DiskFigures {
        seconds: 10.0,
        queues: 2,
        consumption: Some(0.98),
        speed: Some(0.99),
        waited_seconds: 9.5,
        target: Some(TargetFigures {
            target: String::from("p95=1.5ms"),
            holds: Some(true),
            attainable: true,
        }),
        flow_ratio: 1.0,
        classes: vec![class("query"), class("compaction")],
        ..DiskFigures::default()
    }
}

fn kinds(figures: &DiskFigures) -> Vec<FindingKind> {
    findings(figures).iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_full_disk_whose_classes_have_their_shares_is_healthy() {
    let [finding] = &findings(&healthy())[..] else { panic!("{:?}", findings(&healthy())) };
    assert_eq!(finding.kind, FindingKind::Healthy);
    assert!(!finding.kind.warns());
    assert_eq!(
        finding.to_string(),
        "The disk is busy for 98 % of its time, and all waiting classes get their shares; the latency \
         target p95=1.5ms holds."
    );
}

#[test]
fn nothing_at_all_is_healthy_too() {
    assert_eq!(kinds(&DiskFigures::default()), [FindingKind::Healthy]);
    let idle = DiskFigures { seconds: 1.0, consumption: Some(0.0), ..DiskFigures::default() };
    assert_eq!(kinds(&idle), [FindingKind::Healthy]);
}

#[test]
fn a_model_that_is_too_high_says_by_how_much() {
    let figures = DiskFigures { speed: Some(1.0 / 1.2), ..healthy() };
    let found = findings(&figures);
    assert_eq!(found[0].kind, FindingKind::ModelTooFast);
    assert!(found[0].what.contains("20 % too high"), "{}", found[0]);
    assert!(found[0].remedy.contains("forebay tune"), "{}", found[0]);
    // the same where it always was so,
    let always = DiskFigures { speed_before: Some(0.84), ..figures.clone() };
    assert_eq!(kinds(&always), [FindingKind::ModelTooFast]);
    // but not where nobody waited
    let idle = DiskFigures { waited_seconds: 0.5, ..figures };
    assert_eq!(kinds(&idle), [FindingKind::Healthy]);
}

#[test]
fn a_disk_that_was_faster_before_got_slow() {
    let figures = DiskFigures { speed: Some(0.4), speed_before: Some(0.98), ..healthy() };
    assert_eq!(kinds(&figures), [FindingKind::DiskGotSlow]);
}

#[test]
fn a_slow_disk_is_not_taken_for_a_late_thread() {
    let slow = DiskFigures {
        speed: Some(0.5),
        speed_before: Some(1.0),
        late_turns: 90,
        late_seconds: 0.3,
        ..healthy()
    };
    assert_eq!(kinds(&slow), [FindingKind::DiskGotSlow]);
    let late = DiskFigures { late_seconds: 3.0, ..slow };
    assert_eq!(kinds(&late), [FindingKind::LateShard, FindingKind::DiskGotSlow]);
}

#[test]
fn stalled_threads_are_distinguished_from_late_ones() {
    let stalled = DiskFigures { late_turns: 4, late_seconds: 2.0, ..healthy() };
    assert_eq!(kinds(&stalled), [FindingKind::ShardStalled]);
    let late = DiskFigures { late_turns: 400, late_seconds: 2.0, ..healthy() };
    assert_eq!(kinds(&late), [FindingKind::LateShard]);
    assert!(findings(&late)[0].what.contains("by 5 ms on average"), "{}", findings(&late)[0]);
    let still = DiskFigures { turn_overdue_seconds: 7.0, ..healthy() };
    assert_eq!(kinds(&still), [FindingKind::ShardStalled]);
    assert!(findings(&still)[0].what.contains("stalled for 7.0 s"), "{}", findings(&still)[0]);
    let seldom = DiskFigures { late_turns: 40, late_seconds: 0.1, ..healthy() };
    assert_eq!(kinds(&seldom), [FindingKind::Healthy]);
}

#[test]
fn a_class_is_starved_by_its_limit_only_while_it_waits() {
    let mut figures = healthy();
    figures.classes[0].limited_seconds = 9.0;
    figures.classes[0].consumption = 0.05;
    figures.classes[1].consumption = 0.93;
    let found = findings(&figures);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, FindingKind::StarvedByLimit);
    assert_eq!(found[0].class.as_deref(), Some("query"));
    figures.classes[0].waiting = 0.0;
    assert_eq!(kinds(&figures), [FindingKind::Healthy]);
}

#[test]
fn a_class_below_its_shares_is_named() {
    let of = |seconds, had| {
        let mut figures = healthy();
        figures.classes[0].while_waiting = Some(DiskPart { seconds, had, by_shares: 0.5 });
        kinds(&figures)
    };
    assert_eq!(of(4.0, 0.2), [FindingKind::BelowShare]);
    assert_eq!(of(4.0, 0.4), [FindingKind::Healthy]);
    assert_eq!(of(0.5, 0.2), [FindingKind::Healthy]);
}

/// As it was of a class that writes for one second of five: waiting in the mean, and 8 % for 40 %.
#[test]
fn a_class_that_did_not_want_work_all_the_time_is_not_below_its_shares() {
    let mut figures = healthy();
    (figures.classes[0].consumption, figures.classes[1].consumption) = (0.08, 0.9);
    assert_eq!(kinds(&figures), [FindingKind::Healthy]);
}

#[test]
fn requests_that_the_disk_does_not_give_back_are_told_for_as_long_as_that_lasts() {
    let mut figures = healthy();
    figures.consumption = Some(0.0);
    (figures.classes[1].held, figures.classes[1].held_seconds) = (16, 4.7);
    let found = findings(&figures);
    assert_eq!(found[0].kind, FindingKind::StuckRequests);
    assert!(found[0].what.starts_with("16 requests of compaction"), "{found:?}");
    assert!(found[0].what.ends_with("since 4.7 s"), "{found:?}");
    // which says more than that they were given up
    figures.overdue = 16;
    assert_eq!(kinds(&figures), [FindingKind::StuckRequests]);
}

#[test]
fn a_disk_that_does_less_of_another_mix_did_not_get_slow() {
    let figures =
        DiskFigures { speed: Some(0.6), speed_before: Some(0.9), mix_changed: true, ..healthy() };
    let found = findings(&figures);
    assert_eq!(found[0].kind, FindingKind::ModelTooFast);
    assert!(found[0].what.contains("and did 90 % of another mix of requests"), "{}", found[0]);
    assert!(!found[0].remedy.contains("smartctl"), "{}", found[0]);
}

#[test]
fn given_up_requests_of_a_seeking_disk_alone_are_no_fault() {
    let remedy = |longest| {
        let figures = DiskFigures { overdue: 3, longest, ..healthy() };
        let found = findings(&figures).remove(0);
        assert!(found.what.contains("the window no longer counts them"), "{found}");
        found.remedy
    };
    assert!(remedy(Some(0.372)).starts_with("A seeking hard disk"), "{}", remedy(Some(0.372)));
    for longest in [None, Some(0.001), Some(4.0)] {
        assert!(remedy(longest).starts_with("Parts of the disk hang"), "{}", remedy(longest));
    }
}

#[test]
fn figures_are_not_called_too_low_where_the_load_moves_no_more_without_a_scheduler() {
    let blocked = BlockedSeconds { pace_disk_idle: 12.0, ..BlockedSeconds::default() };
    let of = |more_unscheduled| DiskFigures { blocked, more_unscheduled, ..healthy() };
    assert_eq!(kinds(&of(Some(false))), [FindingKind::Healthy]);
    for more in [None, Some(true)] {
        let found = findings(&of(more));
        assert_eq!(found[0].kind, FindingKind::ModelTooSlow);
        assert!(found[0].remedy.contains("may be too low"), "{}", found[0]);
    }
    // nor of a disk that does less than they say
    let slow = DiskFigures { speed: Some(0.8), ..of(None) };
    assert_eq!(kinds(&slow), [FindingKind::ModelTooFast]);
}

#[test]
fn the_writer_of_unscheduled_io_decides_the_remedy() {
    let remedy = |own| {
        let figures = DiskFigures {
            written: 1_000_000_000,
            written_unscheduled: 340_000_000,
            written_unscheduled_own: own,
            read: 1_000_000_000,
            read_unscheduled: 340_000_000,
            read_unscheduled_own: own,
            ..healthy()
        };
        let found = findings(&figures);
        assert_eq!(found.len(), 2);
        [found[0].remedy.clone(), found[1].remedy.clone()]
    };
    for others in remedy(Some(1_000_000)) {
        assert!(
            others.starts_with("Other processes") && !others.contains("direct I/O"),
            "{others}"
        );
    }
    for own in remedy(Some(330_000_000)) {
        assert!(own.contains("of this process") && own.contains("direct I/O"), "{own}");
    }
    assert!(remedy(None).iter().all(|unknown| unknown.contains("process")), "{:?}", remedy(None));
}

#[test]
fn unscheduled_and_misaligned_io_is_reported() {
    let figures =
        DiskFigures { written: 1_000_000_000, written_unscheduled: 610_000_000, ..healthy() };
    assert_eq!(kinds(&figures), [FindingKind::UnscheduledWrites]);
    assert!(findings(&figures)[0].what.starts_with("61 %"), "{}", findings(&figures)[0]);
    let figures = DiskFigures { read: 1_000_000_000, read_unscheduled: 200_000_000, ..healthy() };
    assert_eq!(kinds(&figures), [FindingKind::UnscheduledReads]);
    let little = DiskFigures { written: 10_000, written_unscheduled: 10_000, ..healthy() };
    assert_eq!(kinds(&little), [FindingKind::Healthy]);
    let figures = DiskFigures { writes: 1000, writes_misaligned: 300, ..healthy() };
    assert_eq!(kinds(&figures), [FindingKind::MisalignedWrites]);
}

#[test]
fn targets_flows_errors_and_what_hangs_are_told() {
    let missed = |attainable| {
        let target = TargetFigures { holds: Some(false), attainable, ..TargetFigures::default() };
        kinds(&DiskFigures { target: Some(target), ..healthy() })
    };
    assert_eq!(missed(true), [FindingKind::TargetMissed]);
    assert_eq!(missed(false), [FindingKind::TargetUnattainable]);
    assert_eq!(kinds(&DiskFigures { flow_ratio: 1.3, ..healthy() }), [FindingKind::PilesUp]);
    assert_eq!(kinds(&DiskFigures { overdue: 3, ..healthy() }), [FindingKind::Overdue]);
    let mut figures = healthy();
    figures.classes[1].errors = 2;
    assert_eq!(kinds(&figures), [FindingKind::Errors]);
    let fast = DiskFigures { speed: Some(1.5), ..healthy() };
    assert_eq!(kinds(&fast), [FindingKind::ModelTooSlow]);
    assert!(!findings(&fast)[0].to_string().contains("idle"), "{}", findings(&fast)[0]);
    // of two queues for ten seconds
    let idle = |pace_disk_idle| {
        let blocked = BlockedSeconds { pace_disk_idle, ..BlockedSeconds::default() };
        kinds(&DiskFigures { blocked, ..healthy() })
    };
    assert_eq!(idle(12.0), [FindingKind::ModelTooSlow]);
    assert_eq!(idle(4.0), [FindingKind::Healthy]);
}

#[test]
fn reasons_are_read_by_their_names() {
    let blocked = BlockedSeconds::of([("pace", 1.0), ("window", 2.0), ("ahead", 3.0), ("x", 9.0)]);
    assert_eq!(blocked, BlockedSeconds { pace: 1.0, window: 2.0, ahead: 3.0, ..blocked });
    assert_eq!(blocked.why(), Some("other threads are behind and go first"));
    assert_eq!(BlockedSeconds::default().why(), None);
}

#[test]
fn members_with_one_and_a_half_times_their_part_are_named_where_enough_is_in_flight() {
    let with = |seconds: &[f64]| {
        let member = |(place, &in_flight_seconds): (usize, &f64)| MemberFigures {
            name: format!("nvme{place}n1"),
            in_flight_seconds,
        };
        DiskFigures { members: seconds.iter().enumerate().map(member).collect(), ..healthy() }
    };
    for even in [&[][..], &[50.0], &[37.0, 21.0, 21.0, 21.0], &[7.1, 1.0, 1.0, 0.9]] {
        assert_eq!(kinds(&with(even)), [FindingKind::Healthy], "{even:?}");
    }
    let found = findings(&with(&[10.0, 71.0, 10.0, 9.0]));
    assert_eq!(found[0].kind, FindingKind::UnevenMembers);
    assert_eq!(
        found[0].what,
        "Of 4 members of the array, nvme1n1 has 71 % of the requests in flight (25 % would be even)"
    );
    assert!(found[0].remedy.contains("other chunks"), "{}", found[0]);
    let two = findings(&with(&[1.0, 0.0, 0.0, 40.0, 0.0, 40.0]));
    assert!(two[0].what.contains("nvme3n1 has 49 % and nvme5n1 has 49 %"), "{}", two[0]);
}
