//! The budget limits the processor time of the daemon to a share of one processor, and divides this time among the users.
//!
//! Every user with a connection has an account. As time passes, the daemon earns its share of that time as processor time, which
//! is divided equally among the accounts that are not full. In each iteration of its loop, the daemon uses processor time. This
//! time is charged to the users that it has served, in proportion to the work. The daemon does not serve a user whose account is
//! in debt until the account has earned enough. In any interval, the daemon therefore uses at most its share plus earlier
//! savings, whatever clients do.

use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum credit of a user's account. It pays for a burst of about a hundred barriers.
const MAX_SAVED_NS: f64 = 5e6;
/// The maximum credit of the newcomers' account: enough to accept the maximum number of connections without delay.
const MAX_NEWCOMERS_NS: f64 = 20e6;
/// A connection that was not served lately is still served if its user's debt is at most this. So if one connection floods the
/// daemon with requests, the user's other connections are still served.
const MAX_OVERDRAFT_NS: f64 = 0.5e6;

/// The owner of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Payer {
    /// All processes that connect. They share an account, because a connection must be accepted before its user is known.
    Newcomers,
    /// A user, identified by its user id.
    User(u32),
}

impl Payer {
    fn max_saved_ns(self) -> f64 {
        match self {
            Payer::Newcomers => MAX_NEWCOMERS_NS,
            Payer::User(_) => MAX_SAVED_NS,
        }
    }
}

#[derive(Debug, Default)]
struct Account {
    /// The processor time that the owner may still use; negative for a debt.
    credit_ns: f64,
    /// The work that [`note`](Budget::note) has recorded since the last charge.
    work: u32,
    /// Whether the user has left. The account then exists only until its debt is paid.
    is_closed: bool,
}

/// Accounts of processor time, earned as time passes.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The daemon's share of one processor, from 0 to 1.
    share: f64,
    accounts: BTreeMap<Payer, Account>,
    /// The earnings for which no account had room. A new account gets half of them.
    spare_ns: f64,
    last_ns: u64,
    last_used_ns: u64,
}

impl Budget {
    /// Returns a budget. `now_ns` and `used_ns` are the current time and the processor time that this process has used so far.
    pub(crate) fn new(share: f64, now_ns: u64, used_ns: u64) -> Budget {
        let newcomers = Account { credit_ns: MAX_NEWCOMERS_NS, ..Account::default() };
        Budget {
            share,
            accounts: BTreeMap::from([(Payer::Newcomers, newcomers)]),
            spare_ns: MAX_SAVED_NS,
            last_ns: now_ns,
            last_used_ns: used_ns,
        }
    }

    /// Opens an account, or reopens one that still has a debt.
    pub(crate) fn open(&mut self, payer: Payer) {
        let half = self.spare_ns / 2.0;
        let account = self.accounts.entry(payer).or_insert_with(|| {
            self.spare_ns -= half;
            Account { credit_ns: half, ..Account::default() }
        });
        account.is_closed = false;
    }

    /// Closes an account as soon as it is out of debt.
    pub(crate) fn close(&mut self, payer: Payer) {
        if let Some(account) = self.accounts.get_mut(&payer) {
            account.is_closed = true;
        }
    }

    /// Records work for which this account must pay.
    pub(crate) fn note(&mut self, payer: Payer, work: u32) {
        if let Some(account) = self.accounts.get_mut(&payer) {
            account.work += work;
        }
    }

    /// Charges the accounts for the processor time used since the last charge. If no work was recorded, all accounts pay equally.
    pub(crate) fn charge(&mut self, used_ns: u64) {
        let cost = used_ns.saturating_sub(self.last_used_ns) as f64;
        self.last_used_ns = used_ns;
        let all: u32 = self.accounts.values().map(|account| account.work).sum();
        let equal = cost / self.accounts.len() as f64;
        for account in self.accounts.values_mut() {
            let part = if all == 0 { equal } else { cost * f64::from(account.work) / f64::from(all) };
            account.credit_ns -= part;
            account.work = 0;
        }
    }

    /// Divides the earnings since the last call among the accounts.
    pub(crate) fn earn(&mut self, now_ns: u64) {
        let mut earned = now_ns.saturating_sub(self.last_ns) as f64 * self.share;
        self.last_ns = now_ns;
        // Each iteration except the last fills at least one account.
        while earned >= 1.0 {
            let not_full = self.not_full();
            if not_full == 0 {
                break;
            }
            let part = earned / not_full as f64;
            earned = 0.0;
            for (payer, account) in &mut self.accounts {
                let room = payer.max_saved_ns() - account.credit_ns;
                if room > 0.0 {
                    let taken = part.min(room);
                    account.credit_ns += taken;
                    earned += part - taken;
                }
            }
        }
        self.accounts.retain(|_, account| {
            let ends = account.is_closed && account.credit_ns >= 0.0;
            earned += if ends { account.credit_ns } else { 0.0 };
            !ends
        });
        self.spare_ns = (self.spare_ns + earned).min(MAX_SAVED_NS);
    }

    /// Returns whether the account's debt is small enough to serve a connection that was not served lately.
    pub(crate) fn may_overdraw(&self, payer: Payer) -> bool {
        self.debt_ns(payer) <= MAX_OVERDRAFT_NS
    }

    /// Returns whether the account has no debt.
    pub(crate) fn is_solvent(&self, payer: Payer) -> bool {
        self.debt_ns(payer) <= 0.0
    }

    /// Returns the time until the account's debt is paid, if nothing changes meanwhile.
    pub(crate) fn rest(&self, payer: Payer) -> Duration {
        let earns = self.share / self.not_full().max(1) as f64;
        Duration::from_nanos((self.debt_ns(payer).max(0.0) / earns) as u64)
    }

    fn debt_ns(&self, payer: Payer) -> f64 {
        self.accounts.get(&payer).map_or(0.0, |account| -account.credit_ns)
    }

    fn not_full(&self) -> usize {
        self.accounts.iter().filter(|(payer, account)| account.credit_ns < payer.max_saved_ns()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: f64 = 0.008;

    /// A daemon in simulated time. `now` and `used` are the two clocks, in nanoseconds; each request of a user adds its cost to
    /// both.
    struct Simulation {
        budget: Budget,
        now: u64,
        used: u64,
    }

    impl Simulation {
        fn new(users: u32) -> Simulation {
            let mut budget = Budget::new(SHARE, 0, 0);
            (0..users).for_each(|user| budget.open(Payer::User(user)));
            Simulation { budget, now: 0, used: 0 }
        }

        fn request(&mut self, user: u32, cost_ns: u64) {
            self.budget.note(Payer::User(user), 1);
            (self.now, self.used) = (self.now + cost_ns, self.used + cost_ns);
            self.budget.charge(self.used);
            self.budget.earn(self.now);
        }

        fn pass(&mut self, time: Duration) {
            self.now += time.as_nanos() as u64;
            self.budget.earn(self.now);
        }
    }

    #[test]
    fn users_that_ask_without_end_use_the_share_and_no_more() {
        for (users, cost_ns) in [(1, 20_000), (1, 3_000_000), (16, 110_000)] {
            let mut simulation = Simulation::new(users);
            while simulation.now < 200_000_000_000 {
                for user in 0..users {
                    if simulation.budget.is_solvent(Payer::User(user)) {
                        simulation.request(user, cost_ns);
                    }
                }
                let next = (0..users).map(|user| simulation.budget.rest(Payer::User(user))).min().unwrap();
                simulation.pass(next.max(Duration::from_micros(1)));
            }
            let saved = MAX_NEWCOMERS_NS + MAX_SAVED_NS + f64::from(users) * cost_ns as f64;
            let share = (simulation.used as f64 - saved) / simulation.now as f64;
            assert!((0.9 * SHARE..SHARE).contains(&share), "{share} by {users} users, {cost_ns} ns a request");
        }
    }

    #[test]
    fn a_user_that_asks_seldom_never_rests() {
        let mut simulation = Simulation::new(16);
        let seldom = 0;
        for round in 0..100_000 {
            for user in 1..16 {
                if simulation.budget.is_solvent(Payer::User(user)) {
                    simulation.request(user, 200_000);
                }
            }
            if round % 100 == 0 {
                assert!(simulation.budget.is_solvent(Payer::User(seldom)), "round {round}");
                simulation.request(seldom, 30_000);
            }
            simulation.pass(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_user_that_leaves_in_debt_finds_it_again() {
        let mut simulation = Simulation::new(1);
        simulation.request(0, 20_000_000);
        let debt = simulation.budget.rest(Payer::User(0));
        assert!(debt > Duration::from_secs(1));
        simulation.budget.close(Payer::User(0));
        simulation.pass(Duration::from_millis(1));
        simulation.budget.open(Payer::User(0));
        assert!(simulation.budget.rest(Payer::User(0)) > debt / 2);
    }

    #[test]
    fn users_that_come_and_go_gain_nothing() {
        let mut simulation = Simulation::new(0);
        for user in 0..10_000 {
            simulation.budget.open(Payer::User(user));
            simulation.request(user, 100_000);
            simulation.budget.close(Payer::User(user));
        }
        let credit: f64 = simulation.budget.accounts.values().map(|account| account.credit_ns).sum();
        let earned = simulation.now as f64 * SHARE;
        let balance = credit + simulation.budget.spare_ns + simulation.used as f64;
        assert!(balance <= MAX_NEWCOMERS_NS + MAX_SAVED_NS + earned + 1.0, "{balance} of {earned}");
    }

    #[test]
    fn all_pay_for_work_without_a_user() {
        let mut simulation = Simulation::new(3);
        let before: f64 = simulation.budget.accounts.values().map(|account| account.credit_ns).sum();
        simulation.budget.charge(1_000_000);
        let after: f64 = simulation.budget.accounts.values().map(|account| account.credit_ns).sum();
        assert!((before - after - 1e6).abs() < 1.0, "{before} {after}");
    }
}
