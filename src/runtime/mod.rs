//! What lives between commands: time, waiting clients, replication and events.
//!
//! | file | what it does |
//! |---|---|
//! | `board_value` | the board under a key, and what this server alone knows of it |
//! | `commit` | ends a change: replicates its effects once, serves waiting clients, gives the timer its hint |
//! | `timer` | looks at each board when its next time event is due |
//! | `world` | the time, the tokens and the random bits for decisions |
//! | `blocked_claims`, `claim_queue`, `offers`, `choosing`, `touched` | clients that wait for jobs, who is next, what they get, and where to look |
//! | `blocked_batches`, `batch_queue` | of these, clients that wait for several jobs at once |
//! | `blocked_posts`, `post_queue` | posts that wait for room, and which is next |
//! | `blocked_waits`, `wait_index` | clients that wait for something else, and what for |
//! | `arrivals` | boards that have come to a key by another way than our commands |
//! | `connections` | which connection carries which claim |
//! | `publish` | messages and keyspace notifications |
//! | `listeners` | whether anybody would read the effects of a change |
//! | `durability` | whether the server keeps the promise of `appendfsync always` |
//! | `latency` | how late this server was |
//!
//! No unsafe code. No board is open, and no state of this room borrowed, while callbacks of the
//! server run.
//!
//! Uses `redis` and `replies`.

pub mod arrivals;
pub mod batch_queue;
pub mod blocked_batches;
pub mod blocked_claims;
pub mod blocked_posts;
pub mod blocked_waits;
pub mod board_value;
pub mod choosing;
pub mod claim_queue;
pub mod commit;
pub mod connections;
pub mod durability;
pub mod latency;
pub mod listeners;
pub mod offers;
pub mod post_queue;
pub mod publish;
pub mod timer;
pub mod touched;
pub mod wait_index;
pub mod world;
