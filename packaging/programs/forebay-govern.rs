use forebay_govern::ClassSpec;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let class: ClassSpec = "backup=process:pg_basebackup:50".parse()?;
    assert_eq!(class.name, "backup");
    println!("{class}");
    Ok(())
}
