use forebay_core::{DiskModel, DiskRates, GroupConfig, IoGroup, Op, Outcome, Policy, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = DiskModel::from_rates(&DiskRates {
        read_iops: 100_000,
        write_iops: 50_000,
        read_bandwidth: 1_000_000_000,
        write_bandwidth: 500_000_000,
    })?;
    let group = IoGroup::new(GroupConfig::new(model, Policy::pace_window()));
    let queries = group.add_class(None, 1000)?;
    let mut queue = group.join()?;
    let now = Time::from_nanos(1_000);
    queue.enqueue(now, queries, Op::Read, 4096)?;
    let ticket = queue.poll_dispatch(now).ok_or("an idle disk has room")?;
    let completion = queue.complete(Time::from_nanos(90_000), ticket, Outcome::Done)?;
    assert_eq!(completion.disk_nanos, 89_000);
    Ok(())
}
