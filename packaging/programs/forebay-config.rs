use std::collections::BTreeMap;

use forebay_config::ByteSize;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let size: ByteSize = "128KiB".parse()?;
    println!("{size:?}");
    let shares: BTreeMap<String, u32> = forebay_config::parse("shares.yaml", "queries: 1000\n")?;
    assert_eq!(shares["queries"], 1000);
    let error = forebay_config::parse::<BTreeMap<String, u32>>("shares.yaml", "queries: many\n");
    println!("{}", error.expect_err("`many` is no number"));
    Ok(())
}
