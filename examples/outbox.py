"""The transactional outbox without an outbox: the order and its job come into being together, or not at all.

    python examples/outbox.py [--port 6379] [--cluster]

A board is a key like any other. MULTI, WATCH and Lua change it together with the application's own keys; with
appendonly both are in the log as one. In a cluster the keys need one slot: they share the hash tag {shop}.
"""

from __future__ import annotations

import argparse
import os

import redis

Client = redis.Redis | redis.RedisCluster
BOARD, STOCK = "{shop}:jobs", "{shop}:stock"

BUY = """
if redis.call('DECR', KEYS[1]) < 0 then
    redis.call('INCR', KEYS[1])
    return redis.error_reply('SOLDOUT nothing left')
end
redis.call('HSET', KEYS[2], 'state', 'paid', 'customer', ARGV[1])
return redis.call('JOB.POST', KEYS[3], ARGV[1], 'NAME', 'ship', 'ID', KEYS[2])
"""
"""Takes one from the stock, writes the order, and posts the job that ships it."""


def pay(client: Client, order: str, customer: str) -> bool:
    """MULTI: pays an order that is still open, and posts its job; false when another was first."""
    with client.pipeline(transaction=True) as pipe:
        try:
            pipe.watch(order)
            if pipe.hget(order, "state") == "paid":
                return False
            pipe.multi()
            pipe.hset(order, mapping={"state": "paid", "customer": customer})
            pipe.execute_command("JOB.POST", BOARD, customer, "NAME", "ship", "ID", order)
            pipe.execute()
        except redis.WatchError:
            return False
    return True


def url_of(port: int | None) -> str:
    """That of the server at this port, or else $JOBBOARD_URL."""
    default = os.environ.get("JOBBOARD_URL") or "redis://127.0.0.1:6379"
    return default if port is None else f"redis://127.0.0.1:{port}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--port", type=int, help="of a server on this machine (default: $JOBBOARD_URL, or 6379)"
    )
    parser.add_argument("--cluster", action="store_true", help="the port is that of a cluster's node")
    arguments = parser.parse_args()
    kind = redis.RedisCluster if arguments.cluster else redis.Redis
    client: Client = kind.from_url(url_of(arguments.port), protocol=3, decode_responses=True)
    orders = [f"{{shop}}:order:{n}" for n in range(4)]
    client.delete(BOARD, STOCK, *orders)

    print("paid:", pay(client, orders[0], "ann"), "and again:", pay(client, orders[0], "ann"))
    client.set(STOCK, 2)
    for order in orders[1:]:
        try:
            print("bought:", client.eval(BUY, 3, STOCK, order, BOARD, "bob"))
        except redis.ResponseError as error:
            print("refused:", error)
    written = sum(bool(client.exists(order)) for order in orders)
    print(f"orders: {written}, jobs: {client.execute_command('JOB.COUNT', BOARD)}")


if __name__ == "__main__":
    main()
