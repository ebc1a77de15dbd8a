//! The waiting users, the processors that they wait for, and the times of their requests.

use std::time::Instant;

use millstream_fence::barrierd::Request;

/// A user's request.
#[derive(Debug, Clone)]
struct Waiter {
    user: u32,
    request: Request,
    since: Instant,
}

impl Waiter {
    fn wants(&self, cpu: usize) -> bool {
        let cpus = &self.request.cpus;
        cpus.is_empty() || cpus.get(cpu / 64).is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }
}

/// The requests that are not fulfilled yet.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    waiters: Vec<Waiter>,
}

/// The maximum number of different sets of processors in a user's requests. A request with yet another set becomes a request
/// for all processors.
const MAX_SETS: usize = 8;

impl Waiting {
    /// Adds a request that came at `now`. Of a user's requests for the same processors, only two are kept: the oldest, which is
    /// fulfilled first, and the one for the latest virtual time. When that one is fulfilled, all requests in between are
    /// fulfilled as well.
    pub(crate) fn add(&mut self, user: u32, mut request: Request, now: Instant) {
        let mut sets: Vec<&[u64]> = self.of(user).map(|waiter| &waiter.request.cpus[..]).collect();
        sets.sort_unstable();
        sets.dedup();
        if sets.len() >= MAX_SETS && !sets.contains(&&request.cpus[..]) {
            request.cpus.clear();
        }
        let same = |waiter: &Waiter| waiter.user == user && waiter.request.cpus == request.cpus;
        let mut places = (0..self.waiters.len()).filter(|place| same(&self.waiters[*place]));
        match (places.next(), places.next()) {
            (Some(oldest), _) if self.waiters[oldest].request.virtual_time >= request.virtual_time => {}
            (_, Some(latest)) => {
                let latest = &mut self.waiters[latest].request.virtual_time;
                *latest = request.virtual_time.max(*latest);
            }
            _ => self.waiters.push(Waiter { user, request, since: now }),
        }
    }

    /// Removes a user's requests.
    pub(crate) fn forget(&mut self, user: u32) {
        self.waiters.retain(|waiter| waiter.user != user);
    }

    /// Removes the requests whose processors have all passed. `virtual_times` has the virtual time of each processor. Returns
    /// whether any request was removed.
    pub(crate) fn fulfil(&mut self, virtual_times: &[u64]) -> bool {
        let before = self.waiters.len();
        self.waiters.retain(|waiter| {
            virtual_times
                .iter()
                .enumerate()
                .any(|(cpu, time)| waiter.wants(cpu) && *time <= waiter.request.virtual_time)
        });
        self.waiters.len() < before
    }

    /// For each processor, returns the smallest virtual time that a request waits for and that the processor has not exceeded; 0
    /// if no request waits for this processor.
    ///
    /// There must be no request for time 0, which would be the same as no request; the server ensures this.
    pub(crate) fn wanted(&self, virtual_times: &[u64]) -> Vec<u64> {
        let wanted = |(cpu, time): (usize, &u64)| {
            let mine = self.waiters.iter().filter(|waiter| waiter.wants(cpu)).map(|waiter| waiter.request.virtual_time);
            mine.filter(|wanted| time <= wanted).min().unwrap_or(0)
        };
        virtual_times.iter().enumerate().map(wanted).collect()
    }

    /// Returns whether all requests wait for the same processors. If so, the bell need ring only once, when all of these
    /// processors have passed: no client is then woken too late.
    pub(crate) fn agree(&self) -> bool {
        self.waiters.windows(2).all(|pair| pair[0].request.cpus == pair[1].request.cpus)
    }

    /// Returns the time at which the oldest request came.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.waiters.iter().map(|waiter| waiter.since).min()
    }

    /// Returns the waiting users. A user may appear several times.
    pub(crate) fn users(&self) -> impl Iterator<Item = u32> {
        self.waiters.iter().map(|waiter| waiter.user)
    }

    fn of(&self, user: u32) -> impl Iterator<Item = &Waiter> {
        self.waiters.iter().filter(move |waiter| waiter.user == user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(virtual_time: u64, cpus: &[u64]) -> Request {
        Request { virtual_time, cpus: cpus.to_vec() }
    }

    #[test]
    fn a_request_is_fulfilled_when_its_processors_have_passed() {
        let mut waiting = Waiting::default();
        let now = Instant::now();
        waiting.add(1, request(5, &[]), now);
        waiting.add(2, request(5, &[0b01]), now);
        assert!(!waiting.agree());
        assert_eq!(waiting.wanted(&[5, 9]), [5, 0]);
        assert!(!waiting.fulfil(&[5, 9]));
        assert!(waiting.fulfil(&[6, 5]), "the second looks at the first processor only");
        assert_eq!(waiting.wanted(&[6, 5]), [0, 5]);
        assert!(waiting.fulfil(&[6, 6]));
        assert_eq!(waiting.oldest(), None);
    }

    #[test]
    fn of_one_user_the_oldest_and_the_latest_request_are_kept() {
        let mut waiting = Waiting::default();
        let now = Instant::now();
        for time in [5, 7, 6, 9, 4] {
            waiting.add(1, request(time, &[]), now);
        }
        assert_eq!(waiting.waiters.len(), 2);
        assert_eq!(waiting.wanted(&[1]), [5]);
        assert!(waiting.fulfil(&[6]));
        assert_eq!(waiting.wanted(&[6]), [9], "the request for 7 is not forgotten");
    }

    #[test]
    fn a_user_cannot_fill_the_list() {
        let mut waiting = Waiting::default();
        for set in 1..1000 {
            waiting.add(1, request(set, &[set]), Instant::now());
        }
        assert!(waiting.waiters.len() <= 2 * (MAX_SETS + 1), "{}", waiting.waiters.len());
        waiting.forget(1);
        assert!(waiting.waiters.is_empty());
    }
}
