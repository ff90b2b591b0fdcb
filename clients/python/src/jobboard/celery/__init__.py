"""Celery and kombu over a board: `broker_url = "jobboard://host:6379/0"`, and `result_backend` the same.

- transport.py, channel.py: kombu's virtual transport; queues of kombu are queues of one board
- holding.py: what a channel has claimed, and the threads that claim and keep leases
- fanout.py: broadcasts by Pub/Sub, which remote control and events need
- messages.py: a message as a job, and back
- addresses.py: what a URL says
- results.py: the result backend

It needs the extra celery. Celery finds it by entry points; a program that uses kombu alone imports this
module first.

Uses `board` and `worker`.
"""

from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["jobboard"] = "jobboard.celery.transport:Transport"
