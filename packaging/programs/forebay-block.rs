use forebay_block::{Backing, Machine, Stack};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:?}", Backing::of("ext4"));
    let machine = Machine::this();
    println!("{:?}", Stack::of_path(&machine, ".".as_ref())?.block_device());
    Ok(())
}
