//! The stand-ins of a case of `millstream test`: what runs in place of programs ([`StandInProgram`]) and answers in
//! place of servers ([`Server`]), and the ops that stay in the folder of the case ([`Confined`]).

mod confined;
mod difference;
mod program;
mod server;

use std::sync::Arc;

pub use self::confined::{Confined, source_outside};
pub use self::difference::bytes_differ;
pub use self::program::StandInProgram;
pub use self::server::Server;

/// The stand-ins for programs and servers in a case.
#[derive(Debug)]
pub struct StandIns {
    /// The command that runs in place of programs.
    pub program: Arc<StandInProgram>,
    /// The responses sent in place of servers.
    pub server: Server,
}
