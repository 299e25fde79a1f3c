//! The version and features of the library.

use std::ffi::c_int;

use crate::call::call_done;
use crate::code::FOREBAY_E_VERSION;
use crate::failure::Failure;

/// The version of this header: 1,000,000 times the major version, plus 1,000 times the minor version,
/// plus the patch.
pub const FOREBAY_VERSION: u32 = 1_000;

/// Event loops can wait for permits by a descriptor.
pub const FOREBAY_FEATURE_EVENTS: u64 = 1;
/// Snapshots are available as OpenMetrics text.
pub const FOREBAY_FEATURE_OPEN_METRICS: u64 = 2;
/// Writes, flushes and reads through the page cache can be scheduled.
pub const FOREBAY_FEATURE_PAGE_CACHE: u64 = 4;
/// Files can be deleted in steps.
pub const FOREBAY_FEATURE_DELETER: u64 = 8;

/// Returns the version of the library, in the form of `FOREBAY_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_version() -> u32 {
    FOREBAY_VERSION
}

/// Returns the features of the library: a sum of `FOREBAY_FEATURE_...`.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_features() -> u64 {
    FOREBAY_FEATURE_EVENTS
        | FOREBAY_FEATURE_OPEN_METRICS
        | FOREBAY_FEATURE_PAGE_CACHE
        | FOREBAY_FEATURE_DELETER
}

/// Checks that the library fits a program that was compiled with a header of `version`. Call it once,
/// with `FOREBAY_VERSION`. Returns `FOREBAY_E_VERSION` if the library is older or has another major
/// version. Before 1.0 another minor version does not fit either.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_check_version(version: u32) -> c_int {
    call_done(|| check(FOREBAY_VERSION, version))
}

fn check(library: u32, header: u32) -> Result<(), Failure> {
    let parts = |version: u32| [version / 1_000_000, version / 1_000 % 1_000, version % 1_000];
    let ([major, minor, patch], [wanted, of_minor, of_patch]) = (parts(library), parts(header));
    let is_same = major == wanted && (minor == of_minor || major > 0 && minor > of_minor);
    if is_same && (minor, patch) >= (of_minor, of_patch) {
        return Ok(());
    }
    let text = format!(
        "the library is forebay {major}.{minor}.{patch}, and the program was compiled for \
         {wanted}.{of_minor}.{of_patch}: install that version, or compile with this library's header"
    );
    Err(Failure::new(FOREBAY_E_VERSION, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_version_of_the_crate() {
        let parts = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse::<u32>().unwrap());
        assert_eq!(parts.fold(0, |version, part| version * 1_000 + part), FOREBAY_VERSION);
    }

    #[test]
    fn a_library_fits_headers_of_its_interface_that_are_not_newer() {
        let fits = |library, header| check(library, header).is_ok();
        assert!(fits(1_000, 1_000) && fits(1_002, 1_001) && fits(1_002_000, 1_001_003));
        assert!(!fits(1_000, 1_001), "older");
        assert!(!fits(2_000, 1_000) && !fits(1_000, 2_000), "another minor version before 1.0");
        assert!(!fits(1_001_000, 1_002_000), "older");
        assert!(!fits(2_000_000, 1_000_000) && !fits(1_000_000, 1_000));
    }
}
