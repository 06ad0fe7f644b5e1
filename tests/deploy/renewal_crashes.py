"""Run in a separate process: a child is killed by SIGKILL before each file operation that renews a certificate.

It forks, so that everything is imported once; `test_renewal.py` reads what it prints.
"""

import json
import signal
import sys
from functools import partial
from pathlib import Path

from discreet.cli.deploy.status_command import open_deployment
from discreet.deploy.certificates import check_certificates
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.renewal import renew_certificate
from discreet.durable_files import OWNER
from tests.deploy.creation_crashes import die_before_change
from tests.deploy.example_sites import PLAIN, create_site
from tests.experiment.crashes import child

NAMES = ("server.crt", "server.tls.key", "ca.crt", "ca.key")


def renew(root: DeploymentFolder, number: int) -> None:
    """Renew certificate and authority, and die before the change with this number."""
    die_before_change(number, root.folder)
    renew_certificate(root, new_authority=True)


def contents(root: DeploymentFolder) -> list[bytes]:
    """Read what a renewal replaces."""
    return [*((root.server / name).read_bytes() for name in NAMES), (root.app / "ca.crt").read_bytes()]


def main(folder: Path) -> dict[str, object]:
    """Kill a renewal before each change, and look at the files as the next command finds them.

    Returns:
        The number of killed renewals, how many left the old and the new files, and the problems that were found.
    """
    root, killed, kept, renewed, problems = create_site(folder, PLAIN), 0, 0, 0, list[str]()
    before = contents(root)
    while (last := child(partial(renew, root, killed + 1))) == -signal.SIGKILL:
        killed += 1
        now = contents(open_deployment(root.folder))
        check_certificates(root.server)
        changed = [old != new for old, new in zip(before, now, strict=True)]
        if (any(changed) and not all(changed)) or now[2] != now[4]:
            problems.append(f"half of the files are new after change {killed}: {changed}")
        problems += [str(path) for path in root.server.rglob("*.key") if path.stat().st_mode & 0o777 != OWNER]
        kept, renewed, before = kept + (not any(changed)), renewed + all(changed), now
    return {"killed": killed, "last": last, "kept": kept, "renewed": renewed, "problems": problems}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
