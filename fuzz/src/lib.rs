//! What the targets share: an input as a list of choices, the sessions with the module in a server in
//! memory that these come to, and what must hold after whatever happens there.

pub mod choices;
pub mod input;
mod judge;
pub mod play;
mod seen;
mod words;

#[path = "../../board/tests/hostile/numbers.rs"]
pub mod numbers;
#[path = "../../board/tests/life/site.rs"]
pub mod site;
#[path = "../../board/tests/hostile/whole.rs"]
pub mod whole;
#[path = "../../board/tests/world/mod.rs"]
pub mod world;
