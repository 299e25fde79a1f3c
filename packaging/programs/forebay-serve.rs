use forebay_serve::ServeConfig;

fn main() {
    println!("{:?}", ServeConfig::new(1 << 30));
}
