//! Where on the disk the files are, and of which extents.

/// Files of a kind, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    /// The first byte of the first file.
    pub(crate) start: u64,
    /// The first byte behind the last one.
    pub(crate) end: u64,
    /// Bytes of each file; 0 if there is one.
    pub(crate) file_size: u64,
    /// Bytes of each extent but the last of a file; 0 if a file is one.
    pub(crate) extent_size: u64,
}

/// All files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Areas(Vec<Area>);

impl Areas {
    pub(crate) fn new(mut areas: Vec<Area>) -> Self {
        areas.sort_unstable_by_key(|area| area.start);
        Self(areas)
    }

    /// The first byte behind the extent that has the byte at `offset`. What is in no file is an
    /// extent without end.
    pub(super) fn end_of_extent(&self, offset: u64) -> u64 {
        let Some(area) = self.area(offset) else { return u64::MAX };
        let unit = |size: u64| if size == 0 { u64::MAX } else { size };
        let in_area = offset - area.start;
        let in_file = in_area % unit(area.file_size);
        let extent = unit(area.extent_size);
        let rest = (extent - in_file % extent).min(unit(area.file_size) - in_file);
        offset.saturating_add(rest).min(area.end)
    }

    /// How many extents a range touches, about: as many as its length has of the first one's
    /// size, at least one.
    pub(super) fn extents(&self, start: u64, end: u64) -> u64 {
        let size = self.area(start).map_or(0, |area| match area.extent_size {
            0 => area.file_size,
            extent => extent,
        });
        (end - start).checked_div(size).unwrap_or(1).max(1)
    }

    fn area(&self, offset: u64) -> Option<&Area> {
        let behind = self.0.partition_point(|area| area.start <= offset);
        let area = self.0.get(behind.checked_sub(1)?)?;
        (offset < area.end).then_some(area)
    }
}
