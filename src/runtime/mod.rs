//! What lives between commands: time, clients that wait, what is replicated and told.
//!
//! | file | what it does |
//! |---|---|
//! | `board_value` | the board under a key, and what this server alone knows of it |
//! | `commit` | ends a change: replicates its effects once, serves who waits, tells the timer |
//! | `timer` | looks at each board when time does something with it |
//! | `world` | the time, the tokens and the random bits that decisions are made with |
//! | `blocked_claims`, `claim_queue` | clients that wait for jobs, and who is next |
//! | `blocked_waits`, `wait_index` | clients that wait for something else, and what for |
//! | `connections` | which connection carries which claim |
//! | `publish` | messages and keyspace notifications |
//! | `durability` | whether the server keeps what `appendfsync always` promises |
//! | `latency` | how late this server was |
//!
//! No unsafe code. No board is open, and no state of this room borrowed, while callbacks of the
//! server run.
//!
//! Uses `redis` and `replies`.

pub mod blocked_claims;
pub mod blocked_waits;
pub mod board_value;
pub mod claim_queue;
pub mod commit;
pub mod connections;
pub mod durability;
pub mod latency;
pub mod publish;
pub mod timer;
pub mod wait_index;
pub mod world;
