//! The command line of `millstream slab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use millstream_command::size;

/// The end of `millstream slab --help`.
const EXIT_STATUS: &str = "\
Examples:
  millstream slab create /dev/shm/sessions --object 256 --objects 1000000
  millstream slab stat /dev/shm/sessions
  millstream slab dump /dev/shm/sessions --json | jq .handle
  millstream slab dump /dev/shm/sessions --owner 4711
  millstream slab recover /dev/shm/sessions

`stat`, `check` and `dump` change nothing and need no write permission: they show what is there, including what a crash has \
left, even in a slab that is too damaged to be opened. `recover` opens it as any of its users does.

Exit status:
  0  done, and nothing is wrong
  1  check: something is wrong; it is printed
  2  the arguments are wrong, or the file can't be made, or is not a slab";

/// `millstream slab`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS)]
pub struct SlabArgs {
    /// The task for the slab.
    #[command(subcommand)]
    pub command: SlabCommand,
}

/// The subcommands of `millstream slab`.
#[derive(Debug, Subcommand)]
pub enum SlabCommand {
    /// Make a slab in a new file.
    Create(CreateArgs),
    /// Show the settings of a slab and the use of its objects.
    Stat(StatArgs),
    /// Check that every object is accounted for exactly once.
    Check(CheckArgs),
    /// Print every allocated object: number, generation, handle, holder, owner, bytes.
    Dump(DumpArgs),
    /// Return the free objects in the caches of dead processes, make orphans of the objects they held, and print
    /// counts.
    Recover(RecoverArgs),
}

/// `millstream slab create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The file, which must not exist; a file in /dev/shm is memory that outlives the processes that use it.
    pub file: PathBuf,
    /// The size of an object: 64, 4KiB, …
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub object: u64,
    /// The maximum number of objects.
    #[arg(long, value_name = "N")]
    pub objects: u64,
    /// How many objects may be used before the slab grows [default: all].
    #[arg(long, value_name = "N")]
    pub capacity: Option<u64>,
    /// How many caches (threads) can use the slab at once.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub caches: u64,
    /// How many objects move between a cache and the depot at once [default: up to 64].
    #[arg(long, value_name = "N")]
    pub chain: Option<u64>,
    /// The application's tag: a number that distinguishes its objects from those of other applications.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub tag: u64,
    /// Keep the last owner of each object; see `RawCache::set_owner`.
    #[arg(long)]
    pub owners: bool,
    /// The file's permissions, in octal; the umask applies.
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode)]
    pub mode: u32,
    /// Ask for huge pages.
    #[arg(long)]
    pub huge_pages: bool,
    /// Have the file system set aside the space of objects before they are used.
    #[arg(long)]
    pub reserve: bool,
}

/// `millstream slab stat`.
#[derive(Debug, Args)]
pub struct StatArgs {
    /// The slab.
    pub file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `millstream slab check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The slab.
    pub file: PathBuf,
}

/// `millstream slab dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// The slab.
    pub file: PathBuf,
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
    /// Print only objects with this owner.
    #[arg(long, value_name = "N")]
    pub owner: Option<u64>,
    /// Print only orphans, which `recover` makes of the objects that dead processes held.
    #[arg(long)]
    pub orphans: bool,
}

/// `millstream slab recover`.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// The slab.
    pub file: PathBuf,
    /// Recover the slab even if it belongs to another user, or others may write to it.
    #[arg(long)]
    pub trust_others: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

fn mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("permissions are three octal digits, as in 660".to_owned()),
    }
}
