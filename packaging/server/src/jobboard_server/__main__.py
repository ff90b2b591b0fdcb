"""`python -m jobboard_server`: where the module is."""

from . import MODULE

print(MODULE)
