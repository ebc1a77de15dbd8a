//! Models of everything in a fiber's life except its waits: its control block, its joiner, its slot before it starts, and its
//! end.
//!
//! Each fiber has a probe. Every use of the fiber reads the probe, and the destruction of its control block writes it. If a use
//! could come after the destruction, or before the fiber exists, loom reports a race.

use std::ptr::NonNull;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use millstream_sync::eventcount::SpinPolicy;

use super::blocks::Pool;
use super::core::{Core, Start, Work};
use super::core_ref::CoreRef;
use super::end::End;
use super::joiner::is_in_cycle;
use super::local::Local;
use super::post::Post;
use super::shared::Shared;
use crate::model::explore;
use crate::primitive::{Ordering::SeqCst, fence};
use crate::waiter::ThreadWaiter;
use crate::{IoModel, Options, Threads};

struct Probe(UnsafeCell<u32>);

impl Work for Probe {
    unsafe fn run(&self, _: Start) {
        // SAFETY: the control block is alive; loom checks it.
        self.0.with(|probe| assert_eq!(unsafe { *probe }, 0));
    }

    unsafe fn discard(&self) {
        // SAFETY: only the fiber writes, and its joiner reads after its end; loom checks it.
        self.0.with_mut(|probe| unsafe { *probe = 0 });
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: nothing uses the fiber from here on; loom checks it.
        self.0.with_mut(|probe| unsafe { *probe = 1 });
    }
}

fn core(id: u64) -> Core {
    let work: Box<dyn Work> = Box::new(Probe(UnsafeCell::new(0)));
    Core::new(id, None, IoModel::default(), None, NonNull::from(Box::leak(work)))
}

fn fiber(pool: &Pool, id: u64) -> [CoreRef; 2] {
    pool.take().fill(core(id))
}

/// Reads the probe, as any holder of a reference may.
fn look(fiber: &Core) {
    // SAFETY: the probe only reads.
    unsafe { fiber.work().run(Start::Run) };
}

/// Writes to the probe, as the running fiber may.
fn write(fiber: &Core) {
    // SAFETY: the probe only writes.
    unsafe { fiber.work().discard() };
}

fn posts() -> Vec<Arc<Post>> {
    vec![Arc::new(Post::new(0))]
}

#[test]
fn a_dump_finds_each_fiber_whole_though_its_block_is_used_again() {
    explore(3, || {
        let pool = Arc::new(Pool::new(&[]));
        let worker = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                for id in 1..=2 {
                    let fibers = fiber(&pool, id);
                    assert_eq!(fibers[0].id, id);
                    drop(fibers);
                }
            })
        };
        for fiber in pool.all() {
            look(&fiber);
        }
        worker.join().unwrap();
        assert!(pool.all().is_empty());
    });
}

#[test]
fn the_last_of_two_references_ends_the_fiber_after_the_other() {
    explore(3, || {
        let pool = Pool::new(&[]);
        let [here, there] = fiber(&pool, 1);
        let other = thread::spawn(move || look(&there));
        look(&here.clone());
        drop(here);
        // A handle may outlive the runtime.
        drop(pool);
        other.join().unwrap();
    });
}

/// Waits for the end of `target`, in the role of a fiber of another worker.
fn join(fiber: &CoreRef, target: &Core, post: &Post) {
    if !target.joiner.enter(fiber) {
        return;
    }
    while !target.joiner.has_ended() {
        // A waiting fiber owns this reference to itself.
        let own = CoreRef::into_raw(fiber.clone());
        if fiber.wait.begin() {
            let mut woken = 0;
            while woken == 0 {
                let key = post.inbox.bell.snapshot();
                post.inbox.take(|_| woken += 1);
                if woken == 0 {
                    let _ = post.inbox.bell.sleep(key, None, SpinPolicy::NONE);
                }
            }
            assert_eq!(woken, 1, "one wait has one wake-up");
            fiber.wait.end();
        } else {
            // SAFETY: the fiber does not wait, so nothing has taken the reference.
            drop(unsafe { CoreRef::from_raw(own) });
        }
    }
    target.joiner.leave();
}

#[test]
fn a_fiber_that_joins_sees_the_end_and_what_came_before() {
    explore(3, || {
        let posts = posts();
        let pool = Pool::new(&posts);
        let ([target, ending], [joiner, spare]) = (fiber(&pool, 1), fiber(&pool, 2));
        drop(spare);
        joiner.settle(&posts[0]);
        let worker = thread::spawn(move || {
            write(&ending);
            ending.joiner.end();
        });
        join(&joiner, &target, &posts[0]);
        look(&target);
        // The joiner may end while the other worker is still in the call that wakes it.
        drop((target, joiner));
        worker.join().unwrap();
    });
}

#[test]
fn the_end_is_seen_with_what_came_before() {
    explore(3, || {
        let pool = Pool::new(&[]);
        let [target, ending] = fiber(&pool, 1);
        let worker = thread::spawn(move || {
            write(&ending);
            ending.joiner.end();
        });
        while !target.joiner.has_ended() {
            thread::yield_now();
        }
        look(&target);
        worker.join().unwrap();
    });
}

#[test]
fn a_fiber_that_is_cancelled_in_its_join_is_not_touched_after_it_has_left() {
    explore(3, || {
        let posts = posts();
        let pool = Pool::new(&posts);
        let ([target, ending], [joiner, spare]) = (fiber(&pool, 1), fiber(&pool, 2));
        drop(spare);
        joiner.settle(&posts[0]);
        let worker = thread::spawn(move || ending.joiner.end());
        if target.joiner.enter(&joiner) {
            target.joiner.leave();
        }
        drop((target, joiner));
        worker.join().unwrap();
    });
}

#[test]
fn a_thread_that_joins_sees_the_end_and_what_came_before() {
    explore(3, || {
        let pool = Pool::new(&[]);
        let [target, ending] = fiber(&pool, 1);
        let worker = thread::spawn(move || {
            write(&ending);
            ending.joiner.end();
        });
        let waiter = Arc::new(ThreadWaiter::new());
        if target.joiner.enter_thread(Arc::clone(&waiter)) {
            while !target.joiner.has_ended() {
                waiter.block(None);
            }
            target.joiner.leave();
        }
        look(&target);
        worker.join().unwrap();
        assert_eq!(Arc::strong_count(&waiter), 1, "the joiner's word keeps no reference");
    });
}

/// A fiber joins a second fiber of the same worker, and the second fiber ends. Meanwhile another thread interrupts the wait by
/// `disturb`.
fn join_on_the_same_worker(disturb: impl Fn(&Core) + Copy + Sync + Send + 'static) {
    explore(3, move || {
        let shared = Arc::new(Shared::new(Options::new(Threads::One)));
        let post = Arc::clone(&shared.posts[0]);
        let worker = Local::new(Arc::clone(&shared), Arc::clone(&post), false);
        worker.install(|| {
            let ([target, ending], [joiner, spare]) = (fiber(&shared.fibers, 1), fiber(&shared.fibers, 2));
            joiner.settle(&post);
            let other = thread::spawn(move || disturb(&spare));
            assert!(target.joiner.enter(&joiner), "it has not ended");
            // The waiting fiber's own reference.
            let own = CoreRef::into_raw(joiner.clone());
            let waits = joiner.wait.begin();
            if !waits {
                // SAFETY: the fiber does not wait, so nothing has taken the reference.
                drop(unsafe { CoreRef::from_raw(own) });
            }
            // The worker runs the other fiber to its end.
            write(&ending);
            ending.joiner.end();
            drop(ending);
            if waits {
                let mut ready: Vec<_> = worker.ready.borrow_mut().drain(..).collect();
                while ready.is_empty() {
                    let key = post.inbox.bell.snapshot();
                    post.inbox.take(|fiber| ready.push(fiber));
                    if ready.is_empty() {
                        let _ = post.inbox.bell.sleep(key, None, SpinPolicy::NONE);
                    }
                }
                assert_eq!(ready.len(), 1, "one wait has one wake-up");
                joiner.wait.end();
            }
            assert!(target.joiner.has_ended());
            target.joiner.leave();
            look(&target);
            drop((target, joiner));
            other.join().unwrap();
        });
    });
}

#[test]
fn a_join_on_the_same_worker_ends_once_while_the_joiner_is_cancelled() {
    join_on_the_same_worker(|joiner| joiner.cancel());
}

#[test]
fn a_join_on_the_same_worker_ends_once_while_another_thread_lets_go_of_the_joiner() {
    join_on_the_same_worker(look);
}

/// Enters `fiber` as the joiner of `target`, and searches for a cycle.
fn close_cycle(fiber: &CoreRef, target: &CoreRef) -> bool {
    assert!(target.joiner.enter(fiber));
    // Loom treats sequentially consistent accesses as acquire and release; the fence compensates for that.
    fence(SeqCst);
    is_in_cycle(fiber, target)
}

#[test]
fn the_last_fiber_of_a_cycle_finds_it_while_others_leave() {
    explore(2, || {
        let pool = Pool::new(&[]);
        let fibers = [1, 2].map(|id| fiber(&pool, id));
        let [[one, first], [two, second]] = fibers;
        let other = thread::spawn(move || {
            let is_found = close_cycle(&second, &first);
            if is_found {
                first.joiner.leave();
            }
            is_found
        });
        let is_found = close_cycle(&one, &two);
        if is_found {
            two.joiner.leave();
        }
        assert!(other.join().unwrap() | is_found, "a cycle of joins is found");
    });
}

/// Ends every fiber. This never returns if a joiner was left pinned.
fn end_all(fibers: &[CoreRef]) {
    fibers.iter().for_each(|fiber| fiber.joiner.end());
    assert!(fibers.iter().all(|fiber| fiber.joiner.has_ended()));
}

/// Like [`close_cycle`], but if there is a cycle, `fiber` leaves, as a real fiber does.
fn close_cycle_and_leave(fiber: &CoreRef, target: &CoreRef) -> bool {
    let is_found = close_cycle(fiber, target);
    if is_found {
        target.joiner.leave();
    }
    is_found
}

#[test]
fn a_cycle_of_three_is_found_whichever_closes_it() {
    explore(2, || {
        let pool = Pool::new(&[]);
        let [[one, to_one], [two, to_two], [three, to_three]] = [1, 2, 3].map(|id| fiber(&pool, id));
        let second = {
            let two = two.clone();
            thread::spawn(move || close_cycle_and_leave(&two, &to_three))
        };
        let third = {
            let three = three.clone();
            thread::spawn(move || close_cycle_and_leave(&three, &to_one))
        };
        let is_found = close_cycle_and_leave(&one, &to_two);
        let others = [second, third].map(|other| other.join().unwrap());
        assert!(is_found || others.contains(&true), "a cycle of joins is found");
        end_all(&[one, two, three]);
    });
}

#[test]
fn a_search_ends_where_a_member_of_the_cycle_leaves() {
    explore(2, || {
        let pool = Pool::new(&[]);
        let [[one, to_one], [two, to_two], [three, to_three]] = [1, 2, 3].map(|id| fiber(&pool, id));
        assert!(three.joiner.enter(&two));
        let cancelled = {
            let to_three = to_three.clone();
            thread::spawn(move || to_three.joiner.leave())
        };
        let third = {
            let three = three.clone();
            thread::spawn(move || close_cycle_and_leave(&three, &to_one))
        };
        // Whether this call finds the cycle depends on the order of the threads.
        close_cycle_and_leave(&one, &to_two);
        cancelled.join().unwrap();
        third.join().unwrap();
        end_all(&[one, two, three]);
    });
}

#[test]
fn a_sole_unstarted_fiber_starts_once_and_whole() {
    explore(3, || {
        let pool = Pool::new(&[]);
        let post = Arc::new(Post::new(0));
        let thief = {
            let post = Arc::clone(&post);
            thread::spawn(move || {
                let stolen = post.steal();
                stolen.iter().for_each(|fiber| write(fiber));
                stolen.len()
            })
        };
        let mut started = 0;
        for id in 1..=2 {
            let [handle, queued] = fiber(&pool, id);
            drop(handle);
            if let Some(queued) = post.add_sole_unstarted(queued) {
                post.add_unstarted(queued);
            }
        }
        while let Some(fiber) = post.pop_unstarted() {
            write(&fiber);
            started += 1;
        }
        assert_eq!(started + thief.join().unwrap(), 2);
    });
}

/// Spawns a fiber while the owner of the runtime announces the end. `ask` is the spawner's check whether the end has begun.
fn spawn_at_the_end(ask: impl Fn(&End, &Pool, &Core) + Sync + Send + 'static) {
    explore(3, move || {
        let (pool, end) = (Arc::new(Pool::new(&[])), Arc::new(End::new()));
        // A worker has a spare block, so its spawn takes no lock.
        let block = pool.take();
        let owner = {
            let (pool, end) = (Arc::clone(&pool), Arc::clone(&end));
            thread::spawn(move || {
                end.begin();
                pool.all().iter().for_each(|fiber| fiber.cancel());
            })
        };
        let [fiber, _queued] = block.fill(core(1));
        ask(&end, &pool, &fiber);
        owner.join().unwrap();
        assert!(fiber.is_cancelled(), "the end misses no fiber");
    });
}

#[test]
fn the_end_misses_no_fiber_that_a_thread_spawns() {
    spawn_at_the_end(|end, _, fiber| {
        if end.has_begun() {
            fiber.cancel();
        }
    });
}

#[test]
fn the_end_misses_no_fiber_of_a_worker_that_goes_to_rest() {
    spawn_at_the_end(|end, pool, fiber| {
        if end.seems_begun() {
            fiber.cancel();
        }
        if end.has_begun() {
            pool.all().iter().for_each(|fiber| fiber.cancel());
        }
    });
}
