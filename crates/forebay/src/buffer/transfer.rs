//! Buffers of reads and writes in progress.

use std::any::Any;
use std::fmt;
use std::ops::Range;

use super::aligned::AlignedBuf;
use super::place::Place;
use super::region::Region;
use super::{IoBuf, IoBufMut};
use crate::messages;

/// A buffer of any kind that a read fills, and that its operation owns.
pub struct ReadBuf {
    region: Region,
    /// The number of initialised bytes, from the beginning.
    init: usize,
}

/// A buffer of any kind that a write writes, and that its operation owns.
pub struct WriteBuf {
    /// All of it is initialised. It must not be written to.
    region: Region,
}

/// Takes `buffer` out as a `B`, if it is one.
fn as_it_is<A: 'static, B: 'static>(buffer: &mut Option<A>) -> Option<B> {
    (buffer as &mut dyn Any).downcast_mut::<Option<B>>().and_then(Option::take)
}

impl ReadBuf {
    /// Takes over `buffer`.
    pub fn new<B: IoBufMut>(buffer: B) -> Self {
        let init = buffer.bytes_init();
        let mut buffer = Some(buffer);
        let region = match (as_it_is(&mut buffer), buffer) {
            (Some(aligned), _) => AlignedBuf::into_region(aligned),
            // SAFETY: pointer and length are those of the contract. `IoBufMut` allows writes to the
            // buffer.
            (None, Some(buffer)) => unsafe {
                let range = |buffer: &mut B| (buffer.stable_mut_ptr(), buffer.bytes_total());
                Region::of_buffer(buffer, range, set_init::<B>)
            },
            (None, None) => Region::lost(),
        };
        Self { init: init.min(region.len()), region }
    }

    /// The original buffer, with the bytes that were read. If it is not a `B`, it is dropped, and
    /// this returns `None`.
    pub fn into_inner<B: IoBuf>(self) -> Option<B> {
        // SAFETY: the first `init` bytes are initialised.
        unsafe { into_inner(self.region, self.init) }
    }

    /// The most bytes to read.
    pub const fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The initialised bytes.
    pub const fn filled(&self) -> &[u8] {
        // SAFETY: the first `init` bytes are initialised and within the region.
        unsafe { self.region.bytes(self.init) }
    }

    /// All bytes, with zeros where they were not initialised, for system calls that need
    /// initialised memory. Initialised bytes do not change.
    pub(crate) fn zeroed(&mut self) -> &mut [u8] {
        let (init, len) = (self.init, self.len());
        // SAFETY: the bytes after the first `init` are within the region, which may be written to.
        // After that all bytes are initialised.
        unsafe {
            self.region.as_mut_ptr().add(init).write_bytes(0, len - init);
            self.region.bytes_mut(len)
        }
    }

    /// The pointer and length at which the kernel puts data that it reads into `range`. The length
    /// is limited to the region.
    pub(crate) fn part(&mut self, range: &Range<usize>) -> (*mut u8, usize) {
        let start = range.start.min(self.len());
        let end = range.end.clamp(start, self.len());
        // SAFETY: `start` is within the region.
        (unsafe { self.region.as_mut_ptr().add(start) }, end - start)
    }

    /// The address and length of `range`. `None` if it is not within the buffer.
    pub(crate) fn location(&self, range: &Range<usize>) -> Option<(usize, usize)> {
        self.region.location(range)
    }

    /// Notes that the kernel has put `len` bytes at `start`.
    ///
    /// # Safety
    ///
    /// It has, or these bytes were initialised before.
    pub(crate) unsafe fn set_filled(&mut self, start: usize, len: usize) {
        if start <= self.init {
            self.init = self.init.max((start + len).min(self.len()));
        }
    }

    pub(crate) fn split_off(&mut self, at: usize) -> Option<Self> {
        let region = self.region.split_off(at)?;
        let init = self.init.saturating_sub(at);
        self.init = self.init.min(at);
        Some(Self { region, init })
    }

    /// Joins the part that was split off.
    pub(crate) fn unsplit(&mut self, rest: Self) {
        let is_filled = self.init == self.len();
        join(&mut self.region, rest.region);
        if is_filled {
            self.init = (self.init + rest.init).min(self.len());
        }
    }
}

impl WriteBuf {
    /// Takes over `buffer`, whose initialised bytes will be written.
    pub fn new<B: IoBuf>(buffer: B) -> Self {
        let mut buffer = Some(buffer);
        let region = match (as_it_is(&mut buffer), buffer) {
            (Some(aligned), _) => AlignedBuf::into_region(aligned),
            // SAFETY: pointer and length are those of the contract, and nobody writes through a
            // `WriteBuf`.
            (None, Some(buffer)) => unsafe {
                let range = |buffer: &mut B| (buffer.stable_ptr().cast_mut(), buffer.bytes_init());
                Region::of_buffer(buffer, range, |_, _| ())
            },
            (None, None) => Region::lost(),
        };
        Self { region }
    }

    /// The original buffer. If it is not a `B`, it is dropped, and this returns `None`.
    pub fn into_inner<B: IoBuf>(self) -> Option<B> {
        // SAFETY: all of it was initialised from the beginning.
        unsafe { into_inner(self.region, 0) }
    }

    /// The number of bytes to write.
    pub const fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address and length of `range`. `None` if it is not within the buffer.
    pub(crate) fn location(&self, range: &Range<usize>) -> Option<(usize, usize)> {
        self.region.location(range)
    }

    /// The bytes to write.
    pub const fn filled(&self) -> &[u8] {
        // SAFETY: all of it is initialised.
        unsafe { self.region.bytes(self.len()) }
    }

    pub(crate) fn split_off(&mut self, at: usize) -> Option<Self> {
        Some(Self { region: self.region.split_off(at)? })
    }

    /// Joins the part that was split off.
    pub(crate) fn unsplit(&mut self, rest: Self) {
        join(&mut self.region, rest.region);
    }
}

impl<B: IoBufMut> From<B> for ReadBuf {
    fn from(buffer: B) -> Self {
        Self::new(buffer)
    }
}

impl<B: IoBuf> From<B> for WriteBuf {
    fn from(buffer: B) -> Self {
        Self::new(buffer)
    }
}

impl fmt::Debug for ReadBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ReadBuf");
        debug.field("len", &self.len()).field("filled", &self.init).finish_non_exhaustive()
    }
}

impl fmt::Debug for WriteBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteBuf").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Joins `rest` to the region from which it was split off.
fn join(region: &mut Region, rest: Region) {
    if region.unsplit(rest).is_err() {
        messages::report_invariant("a buffer does not follow the one that it was cut from");
    }
}

/// The original buffer of a region.
///
/// # Safety
///
/// The first `init` bytes of the region are initialised.
unsafe fn into_inner<B: IoBuf>(region: Region, init: usize) -> Option<B> {
    if region.is_lent() {
        // SAFETY: as the caller guarantees.
        return unsafe { region.into_buffer(init) };
    }
    as_it_is(&mut Some(AlignedBuf::from_region(region)))
}

/// Notes in the `B` in `place` that its first `init` bytes are initialised.
///
/// # Safety
///
/// They are initialised.
unsafe fn set_init<B: IoBufMut>(place: &mut Place, init: usize) {
    match place.get_mut::<B>() {
        // SAFETY: as the caller guarantees.
        Some(buffer) => unsafe { buffer.set_init(init) },
        None => messages::report_invariant("a buffer is not where it was put"),
    }
}
