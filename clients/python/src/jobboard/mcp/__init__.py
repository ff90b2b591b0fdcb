"""Boards for language models: a server of the Model Context Protocol, which `jobboard mcp` starts.

`server` is its map, `reading` and `acting` have its tools. `framing` keeps what jobs say apart from what the
server says, `audit` writes down each action.

Uses `board`.
"""
