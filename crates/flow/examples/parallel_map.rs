//! A function over many items, on all cores, with limits: the simplest use of the engine.
//!
//! Results are returned in the order of the items. If an item fails or panics, its result is a dead letter; the others
//! continue.
//!
//! `cargo run --example parallel_map`

use millstream_flow::{BuildError, Need, parallel_map};

fn main() -> Result<(), BuildError> {
    let results = parallel_map(
        ["12", "7", "twelve", "0", "35"],
        |flow| vec![Need::tokens(flow.tokens("licence", 2), 1)], // two at once, however many cores there are
        |text| {
            let number: u32 = text.parse()?;
            Ok(360 / number) // panics at zero
        },
    )?;

    for result in results {
        match result {
            Ok(value) => println!("{value}"),
            Err(letter) => println!("{}: {letter}", letter.input::<&str>().unwrap_or(&"?")),
        }
    }
    Ok(())
}
