"""`eval "$(python -m jobboard.serving)"`: tells programs in other languages where the server and the module
of the extra `server` are.
"""

import shlex
import sys

from .cannot import CannotServe
from .parts import find_module, find_server

if __name__ == "__main__":
    try:
        found = {"JOBBOARD_SERVER": find_server().path, "JOBBOARD_MODULE": find_module()}
    except CannotServe as error:
        sys.exit(f"jobboard: {error}")
    for name, path in found.items():
        print(f"export {name}={shlex.quote(str(path))}")
