//! A function over many items, on all cores, with limits: the thinnest way to use the engine.
//!
//! Results come in the order of the items. An item that fails or panics is a dead letter in its place; the others go
//! on.
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
