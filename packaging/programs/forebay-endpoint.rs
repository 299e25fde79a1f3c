//! Serves a text of the program's own.

use forebay_endpoint::{Endpoint, EndpointConfig};

fn main() -> std::io::Result<()> {
    let config = EndpointConfig { address: ([127, 0, 0, 1], 0).into(), ..Default::default() };
    let endpoint = Endpoint::start(&config, || "# EOF\n".to_owned())?;
    println!("http://{}/metrics", endpoint.address());
    Ok(())
}
