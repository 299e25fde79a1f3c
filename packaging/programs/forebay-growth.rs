use forebay_growth::{Growth, Strategy, grow};

fn main() -> std::io::Result<()> {
    let dir = std::env::temp_dir();
    let growth = Growth { dir, files: 1, file_bytes: 1 << 20, request_bytes: 1 << 16 };
    for strategy in Strategy::ALL {
        println!("{strategy}: {:?}", grow(&growth, strategy, &|| false)?);
    }
    Ok(())
}
