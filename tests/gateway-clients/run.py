"""Drives the gateway of the built program with the published packages of providers and frameworks.

Each program runs three times: at a scripted provider; through the gateway in the mode observe, which must change nothing
of what the provider and the program get; and in the mode remember, in which the last conversation must know what was said
in the first. Arguments name programs, all of which run without.
"""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import programs
import upstream

HERE = Path(__file__).resolve().parent
KEY = "loci_gateway_test_0123456789abcdef"
JAVASCRIPT = ["openai", "anthropic", "vercel", "langchain"]
FACT = "seven years old"

# Headers of one connection, and those that differ from one run of a program to the next.
OF_CONNECTIONS = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding", "x-client-request-id"}


class Loci:
    """The program, which serves until stop."""

    def __init__(self, provider):
        self.directory = Path(tempfile.mkdtemp(prefix="loci-gateway-"))
        self.directory.chmod(0o711)  # as root, Postgres runs as another user
        program = os.environ.get("LOCI_PROGRAM", str(HERE.parents[1] / "bin" / "loci"))
        upstreams = [
            {"name": "openai", "url": f"{provider.url}/openai/v1"},
            {"name": "anthropic", "url": f"{provider.url}/anthropic"},
        ]
        settings = {
            "LOCI_HOME": str(self.directory / "home"),
            "LOCI_ADDR": "127.0.0.1:0",
            "LOCI_API_KEY": KEY,
            "LOCI_UPSTREAMS": json.dumps(upstreams),
        }
        self.log = open(self.directory / "log", "w+")
        self.process = subprocess.Popen(
            [program, "serve"], env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        for line in self.process.stdout:
            if found := re.search(r"serves (http:\S+)", line):
                self.url = found.group(1)
                return
        raise SystemExit(f"{program} ended with {self.process.wait()}:\n{self.faults('')}")

    def faults(self, pattern=r"level=ERROR|level=WARN.*gateway|^panic"):
        """The lines of the log that report faults."""
        self.log.seek(0)
        return [line for line in self.log if re.search(pattern, line)]

    def stop(self):
        """Ends the program. Returns what was wrong with it."""
        self.process.terminate()
        status = self.process.wait()
        wrong = self.faults() + ([f"the server ended with status {status}\n"] if status else [])
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
        return wrong


def plain(value):
    """A value of a package as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    return str(value)


def run(language, name, url, headers):
    """What a program is answered."""
    if language == "python":
        seen = list(getattr(programs, name)(programs.Place(url, headers)))
        return json.loads(json.dumps(seen, default=plain))
    command = ["node", str(HERE / "programs.mjs"), name, url, json.dumps(headers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sent(received):
    """What the provider got, without what differs from one run of a program to the next."""
    return [
        (path, {k.lower(): v for k, v in headers.items() if k.lower() not in OF_CONNECTIONS}, body)
        for path, headers, body in received
    ]


def check(language, name, provider, loci):
    def at(url, **headers):
        provider.received.clear()
        return run(language, name, url, headers), sent(provider.received)

    agent = f"{language}-{name}"
    direct, direct_sent = at(provider.url)
    observed, observed_sent = at(
        loci.url, **{"X-Loci-Key": KEY, "X-Loci-Agent": f"{agent}-observe", "X-Loci-Mode": "observe"}
    )
    same(direct, observed, "the program is answered otherwise in the mode observe")
    same(direct_sent, observed_sent, "the provider gets something else in the mode observe")
    remembered, remembered_sent = at(loci.url, **{"X-Loci-Key": KEY, "X-Loci-Agent": agent})
    same(direct, remembered, "the program is answered otherwise in the mode remember")
    last = remembered_sent[-1][2]
    assert "<recalled_memory>" in last and FACT in last, f"the last conversation does not know the first: {last}"


def same(want, got, what):
    if want == got:
        return
    first = next((pair for pair in zip(want, got) if pair[0] != pair[1]), (len(want), len(got)))
    raise AssertionError(f"{what}:\n{first[0]}\n{first[1]}")


def main():
    wanted = sys.argv[1:]
    provider = upstream.Upstream()
    loci = Loci(provider)
    failed = []
    try:
        every = [("python", program.__name__) for program in programs.ALL] + [("javascript", name) for name in JAVASCRIPT]
        for language, name in every:
            if wanted and name not in wanted:
                continue
            try:
                check(language, name, provider, loci)
                print(f"ok {language} {name}")
            except Exception:
                traceback.print_exc()
                failed.append(f"{language} {name} failed\n")
    finally:
        failed += loci.stop()
    sys.exit("".join(failed) if failed else 0)


if __name__ == "__main__":
    main()
