//! The probability of every state of a claim's tests, trial by trial.

use crate::driver::Tests;
use crate::process::Boundary;
use crate::{Direction, Verdict};

/// A state at an end of the distribution is merged into its neighbour if its probability is below this.
const NEGLIGIBLE: f64 = 1e-40;

/// The distribution of all runs of a claim's tests.
pub(super) struct Walk<'a> {
    tests: &'a Tests,
    rate: f64,
    trials: u64,
    floor: Option<Boundary<'a>>,
    ceiling: Option<Boundary<'a>>,
    /// The undecided runs, by the directions that the tests have proven; see [`index`].
    layers: [Layer; 4],
    holds: f64,
    fails: f64,
}

/// The probability of each number of successes, from `first` on.
#[derive(Debug, Clone, Default)]
struct Layer {
    first: u64,
    mass: Vec<f64>,
}

/// Bit 0 is set if the rate is proven to be above the floor, and bit 1 if it is proven to be below the ceiling. The
/// opposite directions always lead to a verdict.
fn index(floor: Option<Direction>, ceiling: Option<Direction>) -> usize {
    usize::from(floor.is_some()) | usize::from(ceiling.is_some()) << 1
}

impl<'a> Walk<'a> {
    pub(super) fn new(tests: &'a Tests, rate: f64) -> Self {
        let mut layers: [Layer; 4] = Default::default();
        layers[0].mass.push(1.0);
        let floor = tests.floor.as_ref().map(Boundary::new);
        let ceiling = tests.ceiling.as_ref().map(Boundary::new);
        Walk { tests, rate, trials: 0, floor, ceiling, layers, holds: 0.0, fails: 0.0 }
    }

    /// The probability of this verdict.
    pub(super) fn decided(&self, verdict: Verdict) -> f64 {
        match verdict {
            Verdict::Holds => self.holds,
            Verdict::Fails => self.fails,
        }
    }

    /// The probability of no verdict.
    pub(super) fn undecided(&self) -> f64 {
        // Adding 0 turns the -0 of an empty sum into 0.
        self.layers.iter().flat_map(|layer| &layer.mass).sum::<f64>() + 0.0
    }

    /// Advances by one trial.
    pub(super) fn advance(&mut self) {
        self.trials += 1;
        for boundary in [&mut self.floor, &mut self.ceiling].into_iter().flatten() {
            boundary.advance();
        }
        for layer in &mut self.layers {
            layer.advance(self.rate);
        }
        for from in 0..self.layers.len() {
            self.settle(from);
        }
    }

    /// If runs of a layer have just proven a direction, moves them to another layer or to a verdict.
    fn settle(&mut self, from: usize) {
        let mut layer = std::mem::take(&mut self.layers[from]);
        // Boundaries are thresholds on the number of successes, so runs leave the layer only at its two ends.
        while let Some(&mass) = layer.mass.first() {
            if !self.book(from, layer.first, mass) {
                break;
            }
            layer.first += 1;
            layer.mass.remove(0);
        }
        while let Some(&mass) = layer.mass.last() {
            if !self.book(from, layer.first + layer.mass.len() as u64 - 1, mass) {
                break;
            }
            layer.mass.pop();
        }
        self.layers[from] = layer;
    }

    /// If the runs in this state leave their layer, adds them to another layer or to a verdict. Returns whether they
    /// leave.
    fn book(&mut self, from: usize, successes: u64, mass: f64) -> bool {
        let proven = |boundary: &Option<Boundary<'_>>, already: Option<Direction>| {
            let boundary = boundary.as_ref()?;
            already.or_else(|| boundary.direction(successes))
        };
        let floor = proven(&self.floor, (from & 1 != 0).then_some(Direction::Above));
        let ceiling = proven(&self.ceiling, (from & 2 != 0).then_some(Direction::Below));
        match self.tests.verdict(floor, ceiling) {
            Some(Verdict::Holds) => self.holds += mass,
            Some(Verdict::Fails) => self.fails += mass,
            None if index(floor, ceiling) != from => self.layers[index(floor, ceiling)].add(successes, mass),
            None => return false,
        }
        true
    }
}

impl Layer {
    fn advance(&mut self, rate: f64) {
        if self.mass.is_empty() {
            return;
        }
        let miss = 1.0 - rate;
        let mut before = 0.0;
        for mass in &mut self.mass {
            let here = *mass;
            *mass = here * miss + before * rate;
            before = here;
        }
        self.mass.push(before * rate);
        // The ends of a long walk have hardly any probability, but would slow the walk down.
        let dust = self.mass.iter().take_while(|&&mass| mass < NEGLIGIBLE).count();
        if dust > 0 && dust < self.mass.len() {
            let lost: f64 = self.mass.drain(..dust).sum();
            self.first += dust as u64;
            self.mass[0] += lost;
        }
        while self.mass.len() > 1 && self.mass.last().is_some_and(|&mass| mass < NEGLIGIBLE) {
            let lost = self.mass.pop().unwrap_or(0.0);
            *self.mass.last_mut().expect("one is left") += lost;
        }
    }

    fn add(&mut self, successes: u64, mass: f64) {
        if self.mass.is_empty() {
            self.first = successes;
        }
        while successes < self.first {
            self.first -= 1;
            self.mass.insert(0, 0.0);
        }
        let place = (successes - self.first) as usize;
        if place >= self.mass.len() {
            self.mass.resize(place + 1, 0.0);
        }
        self.mass[place] += mass;
    }
}
