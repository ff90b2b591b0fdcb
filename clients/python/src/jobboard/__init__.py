"""Job boards inside Redis and Valkey: post jobs, work on them, watch them."""
