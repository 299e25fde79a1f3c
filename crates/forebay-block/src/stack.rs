//! What is below a file, from its file system down to the disks.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{self, Path};

use rustix::fs::{Mode, OFlags};

use crate::descent::Descent;
use crate::file_stat::FileStat;
use crate::layer::Layer;
use crate::machine::Machine;
use crate::mount::Mount;
use crate::mount_table::MountTable;
use crate::number::DeviceNumber;
use crate::path_walk::{ResolvedPath, resolve};

/// What a file lies on.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The number of its file system or, for a block device, its own.
    pub number: DeviceNumber,
    /// The mount that holds it; none for a block device, and where the mount cannot be seen.
    pub mount: Option<Mount>,
    /// All that it lies on, each once, from the file system down: what is nearer comes first.
    pub layers: Vec<Layer>,
}

impl Stack {
    /// What `path` lies on; a block device lies on itself.
    ///
    /// Mounts that may not answer are asked nothing, so what is in them is not looked for: it need
    /// not exist.
    ///
    /// # Errors
    /// `path` does not exist or cannot be looked up.
    pub fn of_path(machine: &Machine, path: &Path) -> io::Result<Self> {
        let path = path::absolute(path)?;
        let table = machine.mount_table();
        let resolved = resolve(machine, &table, &path)?;
        if resolved.mount.is_some_and(|mount| mount.kind == "autofs") {
            // what is to be mounted there is mounted by who opens it
            rustix::fs::open(machine.at(&path), OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
            let table = machine.mount_table();
            return Self::of_followed(machine, &table, &resolve(machine, &table, &path)?);
        }
        Self::of_followed(machine, &table, &resolved)
    }

    fn of_followed(
        machine: &Machine,
        table: &MountTable,
        resolved: &ResolvedPath<'_>,
    ) -> io::Result<Self> {
        if let Some(number) = resolved.device {
            return Ok(Self::on(machine, table, number, None));
        }
        let number = match resolved.mount {
            Some(mount) => mount.device,
            None => {
                let fd = rustix::fs::open(machine.at(&resolved.path), OFlags::PATH, Mode::empty())?;
                DeviceNumber::of_file(fd)?
            }
        };
        Ok(Self::on(machine, table, number, resolved.mount))
    }

    /// What an open file lies on, by the number of its mount; an open block device lies on itself.
    ///
    /// # Errors
    /// The file cannot be looked up.
    pub fn of_file(machine: &Machine, file: impl AsFd) -> io::Result<Self> {
        let stat = FileStat::of_file(&file)?;
        let table = machine.mount_table();
        if stat.is_device {
            return Ok(Self::on(machine, &table, stat.number, None));
        }
        let id = stat.mount.or_else(|| mount_of(machine, file.as_fd()));
        let mount = id.and_then(|id| table.by_id(id));
        let number = mount.map_or(stat.number, |mount| mount.device);
        Ok(Self::on(machine, &table, number, mount))
    }

    /// The nearest block device, if there is one.
    pub fn block_device(&self) -> Option<DeviceNumber> {
        self.layers.iter().find_map(|layer| match layer {
            Layer::Device(number) => number.is_block().then_some(*number),
            Layer::Pool(_) => None,
        })
    }

    fn on(
        machine: &Machine,
        table: &MountTable,
        number: DeviceNumber,
        mount: Option<&Mount>,
    ) -> Self {
        let layers = Descent::new(machine, table).from(number, mount);
        Self { number, mount: mount.cloned(), layers }
    }
}

impl Machine {
    pub(crate) fn mount_table(&self) -> MountTable {
        MountTable::new(&self.mountinfo())
    }
}

impl DeviceNumber {
    /// The device that `path` lies on or, when it is a block device, the one that it is.
    ///
    /// # Errors
    /// `path` does not exist or cannot be looked up.
    pub fn of(path: &Path) -> io::Result<Self> {
        Stack::of_path(&Machine::this(), path).map(|stack| stack.number)
    }
}

/// The number of a file's mount as `/proc` has it.
fn mount_of(machine: &Machine, file: BorrowedFd<'_>) -> Option<u64> {
    let text = machine.text(format!("proc/self/fdinfo/{}", file.as_raw_fd()))?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}
