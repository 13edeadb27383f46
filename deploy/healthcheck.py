"""Exit 0 when the gateway in this container answers 200: `healthcheck.py [PATH [PORT]]`, /health on 4000.

The image has no curl. Nothing but the standard library, and no proxy of the environment: this runs every few
seconds and asks this very container.
"""

import http.client
import sys

TIMEOUT_S = 3.0


def healthy(path: str = "/health", port: str = "4000") -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not healthy(*sys.argv[1:]))
