//! `forebay export`: what the disks of a machine can do, and how they are set up, as metrics.

mod text;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use clap::Args;
use forebay::metrics::{Endpoint, EndpointConfig};
use forebay::properties::Properties;
use forebay_block::Machine;
use forebay_check::{Report, check};

use crate::console::note;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{metrics_address, properties_file, span};

use text::Exported;

/// The time between two looks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);

/// Serve the properties of a machine's disks, and the findings of `check`, as metrics.
///
/// Checks each directory when it starts and then periodically, and writes one block each time.
/// Nothing is measured: `forebay tune` writes the file for --properties. A program that uses the
/// scheduler serves its own metrics.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Directories that hold data
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The properties of the disks: an io-properties file, or a forebay.yaml, which has more
    #[arg(long, value_name = "FILE")]
    properties: Option<PathBuf>,
    /// The address on which to serve the metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9180",
          value_parser = metrics_address::parse)]
    listen: SocketAddr,
    /// The time between two checks of the directories, which also reload the file of --properties
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span::parse_positive)]
    every: Duration,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let properties = load(options)?;
    let shown = Shown::new(look(options, properties.as_ref(), true));
    let config = EndpointConfig { address: options.listen, ..EndpointConfig::default() };
    let source = shown.clone();
    let endpoint = Endpoint::start(&config, move || source.lock().clone())
        .map_err(|error| Failure::Input(error.to_string()))?;
    // a pipe that is read, or a disk that is checked, may hang: until here a signal ends the
    // program, and from here on neither holds up the end
    let interrupt = Interrupt::on_signals()?;
    note(format_args!("metrics are at http://{}/metrics", endpoint.address()));
    let options = options.clone();
    let checks = thread::spawn(move || repeat(&options, properties, &shown));
    // to end it is no failure: there is no other way
    while !interrupt.is_raised() {
        if checks.is_finished() {
            return Err(Failure::Run(String::from("the checks have panicked")));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Checks the directories, and reloads the file of properties, until the program ends.
fn repeat(options: &Options, mut properties: Option<Properties>, shown: &Shown) {
    loop {
        thread::sleep(options.every);
        let loaded = load(options);
        let is_read = loaded.is_ok();
        match loaded {
            Ok(loaded) => properties = loaded,
            // what was read before is still the best that is known
            Err(failure) => note(format_args!("warning: {failure}")),
        }
        *shown.lock() = look(options, properties.as_ref(), is_read);
    }
}

fn load(options: &Options) -> Result<Option<Properties>, Failure> {
    options.properties.as_deref().map(properties_file::load).transpose()
}

/// The text of a scrape.
#[derive(Clone)]
struct Shown(Arc<Mutex<String>>);

impl Shown {
    fn new(text: String) -> Self {
        Self(Arc::new(Mutex::new(text)))
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks all directories. Returns the text of a scrape.
fn look(options: &Options, properties: Option<&Properties>, is_read: bool) -> String {
    let machine = Machine::this();
    let report = Report::new(options.dirs.iter().map(|dir| check(&machine, dir)).collect());
    let disks = properties.map_or(&[][..], |properties| &properties.disks);
    let checked_at = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Exported { disks, is_read, report: &report, checked_at }.text()
}
