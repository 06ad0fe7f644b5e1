"""The process that is the server: the SuperLink on loopback, and before it the one port that clients reach."""

import signal
import sys
import time
from pathlib import Path

from discreet.deploy import deployment_lock, flower_commands
from discreet.deploy.site import Site
from discreet.errors import DiscreetError

CHECK_SECONDS = 0.2  # seconds between two looks at whether both are there


def run_server(site: Site, listen: str) -> int:
    """Until one of the two ends, or the process is told to."""
    from discreet.engines.flower import front_proxy  # what it speaks comes with an extra

    server, port = site.server, int(site.deployment.address.rpartition(":")[2])
    shown = front_proxy.TlsFiles(server / "ca.crt", server / "server.crt", server / "server.tls.key")
    keys = [card.node_key for card in site.deployment.read_cards(site.app)]
    inner = flower_commands.loopback_address(site)
    with (
        deployment_lock.lock_deployment(site) as held,
        front_proxy.bind_port(listen, port) as door,
        front_proxy.run_proxy(door, inner, shown, keys) as heard,
        flower_commands.run_superlink(site, flower_commands.superlink_command(site, inner), held) as process,
    ):
        while process.poll() is None and heard():
            time.sleep(CHECK_SECONDS)
        return process.poll() or 1


def main(folder: str, listen: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        sys.exit(run_server(Site(Path(folder)), listen))
    except DiscreetError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
