//! Compiles the JSON form of an element tree from standard input; prints the campaign or the diagnostics.
//!
//! For work on this crate alone; users have `wiregauge check`.

use std::io::Read as _;

fn main() -> std::io::Result<()> {
    let mut tree = String::new();
    std::io::stdin().read_to_string(&mut tree)?;
    println!("{}", wg_plan::compile_json(&tree));
    Ok(())
}
