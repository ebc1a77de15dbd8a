//! Ten thousand random valid histories of each specification are accepted.

use std::time::Duration;

use millstream_history::{Kind, Model, Options, Verdict, check};

use crate::support::generate::{Plan, valid};
use crate::support::random::{Random, seed, stress};

fn no_alarm(model: Model) {
    let mut random = Random::new(seed());
    let options = Options { time: Some(Duration::from_secs(300)), ..Options::default() };
    for round in 0..10_000 * stress() {
        let plan = Plan {
            distinct: random.one_in(2),
            crashes: if random.one_in(2) { 8 } else { 0 },
            keys: if random.one_in(4) { 2 } else { 0 },
            ..Plan::new(model, 1 + random.below(5), 4 + random.below(24))
        };
        let history = valid(&plan, &mut random);
        let verdict = check(&history, &model, &options).expect("the generator knows the operations");
        if !matches!(verdict, Verdict::Holds(_)) {
            let rows: Vec<String> =
                (0..history.len()).map(|row| format!("{:?} {}", history.get(row), history.show(row))).collect();
            panic!("{model}, round {round}, {plan:?}:\n{}\n{verdict:?}", rows.join("\n"));
        }
    }
}

macro_rules! no_alarms {
    ($($name:ident: $model:expr;)*) => {
        $(
            #[test]
            fn $name() {
                no_alarm($model);
            }
        )*

        #[test]
        fn every_kind_is_tested() {
            let tested = [$($model),*];
            for &kind in Kind::ALL {
                assert!(tested.iter().any(|model| model.kind == kind), "{kind} is not tested");
            }
        }
    };
}

no_alarms! {
    register: Model::new(Kind::Register);
    cas_register: Model::new(Kind::CasRegister);
    key_value: Model::new(Kind::KeyValue);
    multi_register: Model::new(Kind::MultiRegister);
    counter: Model::new(Kind::Counter);
    fetch_and_add: Model::new(Kind::FetchAdd);
    mutex: Model::new(Kind::Mutex);
    rw_lock: Model::new(Kind::RwLock);
    queue: Model::new(Kind::Queue);
    bounded_queue: Model::new(Kind::Queue).with_capacity(3);
    stack: Model::new(Kind::Stack);
    bounded_stack: Model::new(Kind::Stack).with_capacity(3);
    priority_queue: Model::new(Kind::PriorityQueue);
    bounded_priority_queue: Model::new(Kind::PriorityQueue).with_capacity(3);
    set: Model::new(Kind::Set);
    allocator: Model::new(Kind::Allocator);
    bounded_allocator: Model::new(Kind::Allocator).with_capacity(3);
    semaphore: Model::new(Kind::Semaphore).with_capacity(3);
    event_count: Model::new(Kind::EventCount);
    ring: Model::new(Kind::Ring);
    bounded_ring: Model::new(Kind::Ring).with_capacity(3);
    log: Model::new(Kind::Log);
}
