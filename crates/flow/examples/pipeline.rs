//! A chain of stages with different needs: an order is looked up in a database, priced, and written to a ledger.
//!
//! - `look-up` waits for a database. It is `blocking`, so it does not occupy the workers that compute. It needs one of
//!   three connections, which are objects of a pool. Each batch is granted one connection before a
//!   worker takes the batch.
//! - `price` computes. It may use every core, but a rate limits its requests to a tariff service.
//! - `book` writes batches of up to 16 orders; a partial batch waits 5 ms for more.
//!
//! `cargo run --example pipeline`

use std::thread::sleep;
use std::time::Duration;

use millstream_flow::{Batch, BuildError, Flow, Need, Rate};

/// A connection that counts its queries.
struct Connection {
    number: u32,
    queries: u32,
}

impl Connection {
    fn customer_of(&mut self, order: u32) -> String {
        self.queries += 1;
        sleep(Duration::from_micros(500));
        format!("customer {} (by connection {})", order % 7, self.number)
    }
}

struct Order {
    number: u32,
    customer: String,
}

struct Priced {
    order: Order,
    cents: u64,
}

fn main() -> Result<(), BuildError> {
    let mut flow = Flow::builder("orders");
    flow.inflight(100); // orders between admission and the ledger; the source provides more only below this number

    let connections = flow.pool("connections", (1..=3).map(|number| Connection { number, queries: 0 }));
    let tariff = flow.rate("tariff", Rate::per_second(2_000.0).burst(50));

    let look_up = flow.inlet("look-up");
    let price = flow.inlet("price");
    let book = flow.inlet("book");
    let done = flow.retire();

    let pool = connections.clone();
    flow.stage(look_up, move |number: &mut u32, cx| {
        let mut connection = cx.object(&pool);
        Ok(Order { number: *number, customer: connection.customer_of(*number) })
    })
    .need(Need::object(&connections))
    .blocking()
    .to(price);

    flow.stage(price, |order: &mut Order, _| {
        let order = Order { number: order.number, customer: std::mem::take(&mut order.customer) };
        Ok(Priced { cents: u64::from(order.number) * 199, order })
    })
    .need(Need::tokens(tariff, 1))
    .to(book);

    flow.stage(book, |priced: &mut Priced, _| {
        let Order { number, customer } = &priced.order;
        Ok((*number, format!("order {number:>4}  {:>8} ct  {customer}", priced.cents)))
    })
    .workers(0..=1) // one writer, whatever else is idle
    .batch(Batch::of(16).wait(Duration::from_millis(5)))
    .to(done);

    flow.on_retire(|(number, line): (u32, String)| {
        if number.is_multiple_of(100) {
            println!("{line}");
        }
    });

    let report = flow.build(look_up)?.run(1..=1000);
    println!("{} orders in {:.2} s", report.retired, report.wall_s);
    println!("at most {} connections at once", report.resources[0].peak_in_use);
    println!("limited by {}", report.bottleneck);
    Ok(())
}
