use forebay_block::Machine;
use forebay_check::{Report, check};

fn main() {
    let found = check(&Machine::this(), &std::env::temp_dir());
    print!("{}", Report::new(vec![found]).text(true));
}
