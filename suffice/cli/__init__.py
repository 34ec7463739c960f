"""The commands: parse, call, print; no logic of their own.

``suffice demo`` · ``models`` · ``predict`` · ``methods`` · ``explain`` · ``score`` · ``sanity`` · ``evidence`` ·
``study`` · ``compare`` · ``shortcuts`` · ``figure`` · ``report`` · ``serve`` · ``train`` · ``bench``; each takes
``--help``.
"""


def main() -> None:
    """Entry point of the command ``suffice``."""
    from suffice.cli.app import main as run

    run()
