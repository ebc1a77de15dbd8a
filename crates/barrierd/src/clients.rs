//! Connections, their users, and the limits on their numbers.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use millstream_fence::barrierd::layout::MAX_CLIENTS;

/// The daemon's end of a client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) user: u32,
    /// Whether the daemon currently leaves the connection's requests unread: the connection *rests*.
    pub(crate) rests: bool,
}

#[derive(Debug, Default)]
struct User {
    connections: usize,
    resting: usize,
    /// One more than the number of the user's connection that was served last.
    next: usize,
}

/// The limits on the number of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The maximum number of all connections; at most [`MAX_CLIENTS`].
    pub(crate) all: usize,
    pub(crate) of_a_user: usize,
}

/// All connections, by number.
#[derive(Debug)]
pub(crate) struct Clients {
    places: Vec<Option<Connection>>,
    users: BTreeMap<u32, User>,
    limits: Limits,
}

/// Whether the user of a removed connection has other connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Others,
    TheUser,
}

impl Clients {
    pub(crate) fn new(limits: Limits) -> Clients {
        let all = limits.all.min(MAX_CLIENTS);
        Clients { places: Vec::new(), users: BTreeMap::new(), limits: Limits { all, ..limits } }
    }

    /// Returns the number for a new connection of this user.
    ///
    /// # Errors
    /// Returns the reason why the connection is refused, as human-readable text.
    pub(crate) fn place_for(&self, user: u32) -> Result<usize, String> {
        let Limits { all, of_a_user } = self.limits;
        let theirs = self.users.get(&user).map_or(0, |user| user.connections);
        if theirs >= of_a_user {
            return Err(format!(
                "user {user} has {theirs} connections already, and may have {of_a_user}; close one, or start the daemon with more --connections"
            ));
        }
        let free = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        if free >= all {
            return Err(format!("the daemon has {all} connections already, and can have no more"));
        }
        Ok(free)
    }

    /// Adds a connection with the number that [`place_for`](Clients::place_for) has just returned.
    pub(crate) fn add(&mut self, place: usize, socket: OwnedFd, user: u32) {
        self.users.entry(user).or_default().connections += 1;
        let connection = Some(Connection { socket, user, rests: false });
        match self.places.get_mut(place) {
            Some(free) => *free = connection,
            None => self.places.push(connection),
        }
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Connection> {
        self.places.get(place)?.as_ref()
    }

    /// Closes a connection.
    pub(crate) fn remove(&mut self, place: usize) -> Left {
        let Some(connection) = self.places.get_mut(place).and_then(Option::take) else { return Left::Others };
        let Some(user) = self.users.get_mut(&connection.user) else { return Left::Others };
        user.connections -= 1;
        user.resting -= usize::from(connection.rests);
        if user.connections > 0 {
            return Left::Others;
        }
        self.users.remove(&connection.user);
        Left::TheUser
    }

    /// Marks a connection as resting. Returns the connection, or `None` if it was resting already or does not exist.
    pub(crate) fn rest(&mut self, place: usize) -> Option<&Connection> {
        let connection = self.places.get_mut(place)?.as_mut()?;
        if std::mem::replace(&mut connection.rests, true) {
            return None;
        }
        self.users.entry(connection.user).or_default().resting += 1;
        Some(connection)
    }

    /// Records that, of all connections of this user, this one was served last.
    pub(crate) fn note_heard(&mut self, user: u32, place: usize) {
        self.users.entry(user).or_default().next = place + 1;
    }

    /// Marks all connections of a user as no longer resting, and calls `each` for every connection that was resting. The calls
    /// are in the order of the connections' numbers, beginning after the connection that was served last, so each connection gets
    /// its turn.
    pub(crate) fn end_rest(&mut self, number: u32, mut each: impl FnMut(usize, &Connection)) {
        let Some(user) = self.users.get_mut(&number) else { return };
        user.resting = 0;
        let next = user.next.min(self.places.len());
        for place in (next..self.places.len()).chain(0..next) {
            let connection = self.places[place].as_mut().filter(|it| it.user == number && it.rests);
            if let Some(connection) = connection {
                connection.rests = false;
                each(place, connection);
            }
        }
    }

    /// Returns the users that have a resting connection.
    pub(crate) fn resting_users(&self) -> impl Iterator<Item = u32> {
        self.users.iter().filter(|(_, user)| user.resting > 0).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    fn join(clients: &mut Clients, user: u32) -> Result<usize, String> {
        let place = clients.place_for(user)?;
        clients.add(place, socket(), user);
        Ok(place)
    }

    #[test]
    fn a_user_and_all_together_have_a_limit() {
        let mut clients = Clients::new(Limits { all: 3, of_a_user: 2 });
        assert_eq!([join(&mut clients, 7), join(&mut clients, 7)], [Ok(0), Ok(1)]);
        assert!(join(&mut clients, 7).unwrap_err().contains("user 7 has 2 connections already"));
        assert_eq!(join(&mut clients, 8), Ok(2));
        assert!(join(&mut clients, 9).unwrap_err().contains("the daemon has 3 connections already"));
        assert_eq!(clients.remove(0), Left::Others);
        assert_eq!(clients.remove(2), Left::TheUser);
        assert_eq!(join(&mut clients, 9), Ok(0), "a free place is used again");
        assert_eq!(join(&mut clients, 7), Ok(2));
    }

    #[test]
    fn the_connections_of_a_user_end_their_rest_together() {
        let mut clients = Clients::new(Limits { all: 9, of_a_user: 9 });
        for user in [7, 8, 7] {
            join(&mut clients, user).unwrap();
        }
        assert!(clients.rest(0).is_some() && clients.rest(0).is_none() && clients.rest(1).is_some());
        assert!(clients.rest(2).is_some());
        assert_eq!(clients.resting_users().collect::<Vec<_>>(), [7, 8]);
        let mut served = Vec::new();
        clients.note_heard(7, 0);
        clients.end_rest(7, |place, _| served.push(place));
        assert_eq!(served, [2, 0], "in turn");
        assert_eq!(clients.remove(1), Left::TheUser);
        assert_eq!(clients.resting_users().count(), 0);
    }
}
