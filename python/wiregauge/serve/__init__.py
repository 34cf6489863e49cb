"""Pages of runs for a browser on this machine: found, watched, zoomed into to a single message.

`Server` is the application, `listen` opens its port and serves it until it is stopped. Nothing is sent anywhere, and
nothing below the folders is written unless the server may be controlled.
"""

from wiregauge.serve.access import is_shared, new_token
from wiregauge.serve.application import Server
from wiregauge.serve.listening import PortTakenError, bound, listen

__all__ = ["PortTakenError", "Server", "bound", "is_shared", "listen", "new_token"]
