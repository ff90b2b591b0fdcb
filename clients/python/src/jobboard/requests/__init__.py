"""Every command as a verb, one file a family: what to send, and what the reply means."""
