//! What a class would do, as it is written on the command line.

use std::str::FromStr;

use forebay_config::ByteSize;
use forebay_explore::Demand;

/// Bytes of a read and of a write, as surfaces are measured.
const READ: u32 = 4096;
const WRITE: u32 = 131_072;
/// Fibers of a class that takes all it can get, and the most of others.
const FIBERS: f64 = 64.0;
const FIBERS_MAX: f64 = 1024.0;
const SHARES_MAX: u32 = 10_000;
const RATE_MAX: f64 = 1e9;

/// What a class would do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClassDemand {
    pub(super) name: String,
    pub(super) shares: u32,
    pub(super) writes: bool,
    /// Bytes written or reads per second; all that it can get where that is not given.
    pub(super) rate: Option<f64>,
}

impl FromStr for ClassDemand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write a name, shares from 1 to 10000, and reads=N, writes=SIZE or =max, such as \
             queries:1000:reads=50000 or compaction:100:writes=max"
                .to_owned()
        };
        let mut parts = text.split(':');
        let (Some(name), Some(shares), Some(load), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let shares = shares.parse().ok().filter(|shares| (1..=SHARES_MAX).contains(shares));
        let (kind, rate) = load.split_once('=').ok_or_else(wrong)?;
        let writes = match kind {
            "reads" => false,
            "writes" => true,
            _ => return Err(wrong()),
        };
        let number = match rate {
            "max" => None,
            rate if writes => Some(rate.parse::<ByteSize>().map_err(|_| wrong())?.0 as f64),
            rate => Some(rate.parse().map_err(|_| wrong())?),
        };
        let requests = number.map(|rate| if writes { rate / f64::from(WRITE) } else { rate });
        if name.is_empty() || !name.chars().all(plain) {
            return Err(wrong());
        }
        if requests.is_some_and(|requests| !(1.0..=RATE_MAX).contains(&requests)) {
            return Err(String::from(
                "the rate is out of bounds; give one request of 4 KiB or of \
                                     128 KiB per second or more",
            ));
        }
        let shares = shares.ok_or_else(wrong)?;
        Ok(Self { name: name.to_owned(), shares, writes, rate: number })
    }
}

impl ClassDemand {
    pub(super) fn demand(&self) -> Demand {
        Demand { shares: self.shares, writes: self.writes, rate: self.rate }
    }

    /// The same as an entry of a job file.
    pub(super) fn job(&self) -> String {
        let Self { name, shares, .. } = self;
        let (kind, reqsize) = if self.writes { ("overwrite", WRITE) } else { ("randread", READ) };
        let (fibers, rps) = match self.rate {
            None => (FIBERS, String::new()),
            Some(rate) => {
                let rate = if self.writes { rate / f64::from(WRITE) } else { rate };
                let of_fiber = (rate / FIBERS_MAX).ceil().max(1.0);
                ((rate / of_fiber).round().max(1.0), format!(", rps: {of_fiber}"))
            }
        };
        format!(
            "- name: {name}\n  type: {kind}\n  shards: all\n  data_size: 1GB\n  shard_info: \
             {{parallelism: {fibers}, reqsize: {reqsize}, shares: {shares}{rps}}}\n  options: \
             {{pause_distribution: poisson}}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_read_and_wrong_ones_refused() {
        let demand: ClassDemand = "a-b:200:reads=50000".parse().unwrap();
        assert_eq!((demand.shares, demand.writes, demand.rate), (200, false, Some(50_000.0)));
        assert_eq!("c:1:writes=max".parse::<ClassDemand>().unwrap().rate, None);
        assert_eq!("c:1:writes=1MB".parse::<ClassDemand>().unwrap().rate, Some(1_048_576.0));
        for text in [
            "",
            "a",
            "a:1",
            "a:0:reads=1",
            "a:1:reads",
            "a:1:reads=-1",
            "a:1:reads=NaN",
            "a:1:writes=x",
            "a b:1:reads=1",
            "a:1:trims=1",
            "a:1:reads=1:2",
            "a:1:writes=1",
        ] {
            assert!(text.parse::<ClassDemand>().is_err(), "{text}");
        }
    }
}
