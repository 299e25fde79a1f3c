use forebay_trace::Recorded;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = "  8,0  0  1  0.000000100  42  D  W 1000 + 8 [kworker]\n";
    let mut events = 0;
    Recorded::read(trace.as_bytes(), |_, _| events += 1)?;
    assert_eq!(events, 1);
    Ok(())
}
