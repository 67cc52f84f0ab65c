"""Builds and runs every test, and ends with one line: N passed, N failed, N skipped.

First all tests in debug, then those whose type ends in LongTests, which are too slow in debug: those of code in release, those
that run the program with one that was built in release. The build in release begins beside the tests that wait for other
programs. A test is a function: one with many arguments counts once. Each run is read from Swift Testing's event stream, and from
the printed lines of XCTest. A run that crashes, hangs, fails without a failed test, or runs nothing counts as a failure.

Where no more than five tests with sockets and other programs fail, they run a second time, by themselves: a loaded machine delays
other programs in ways that no test foresees. A test that fails again has failed. One that passes counts as passed. Each test that
was run a second time is named before the closing line, with how often that was necessary in this folder, so that its cause can be
found.
"""

import atexit
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

LONG = "LongTests"
# A folder of its own: code that tests can look into is compiled differently, and the two would undo each other.
RELEASE = ["-c", "release", "--scratch-path", ".build-release-tests", "-Xswiftc", "-enable-testing"]
# How long a build, or a run of tests, may take.
MINUTES = 25
# More failures than these have one cause, which a second try would only repeat.
SECOND_TRIES = 5
# How often each test was run a second time, and how many runs there were.
HISTORY = os.path.join(".build", "second-tries.json")
# Tests that talk to other programs mostly wait for them: so many at once do not keep two cores busy all the time.
AT_ONCE = 3


class Tally:
    """What the runs came to so far."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        # Tests that were run a second time, and whether they passed then.
        self.second = {}
        self.identifiers = {}

    def read_events(self, path, run):
        """Counts a run of Swift Testing; returns how many of its tests ended, or None when it never ended itself."""
        names, begun, ended, finished = {}, set(), 0, False
        for line in read_lines(path):
            try:
                record = json.loads(line)
            except ValueError:
                continue  # the torn end of a crash
            payload = record["payload"]
            if record["kind"] == "test" and payload["kind"] == "function":
                suite = payload["id"].split("/")[0]
                names[payload["id"]] = f"{suite}: {payload.get('displayName', payload['name'])}"
                self.identifiers[names[payload["id"]]] = payload["id"]
            elif record["kind"] == "event":
                finished = finished or payload["kind"] == "runEnded"
                name = names.get(payload.get("testID"))
                if name is None:
                    continue
                text = " ".join(message["text"] for message in payload["messages"])
                symbols = [message["symbol"] for message in payload["messages"]]
                if payload["kind"] == "testStarted":
                    begun.add(payload["testID"])
                elif payload["kind"] == "testSkipped" or (payload["kind"] == "testEnded" and "skip" in symbols):
                    begun.discard(payload["testID"])
                    ended += 1
                    reason = re.search(r': "(.*)"$', text, re.DOTALL)
                    self.skipped.append(f"{name}: {reason[1] if reason else 'no reason given'}")
                elif payload["kind"] == "testEnded":
                    begun.discard(payload["testID"])
                    ended += 1
                    if "fail" in symbols:
                        self.failed.append(name)
                    else:
                        self.passed += 1
        self.failed += [f"{names[test]}: never ended ({run})" for test in sorted(begun)]
        return ended if finished else None

    def read_xctest(self, lines):
        """Counts what XCTest printed; returns how many of its tests ended."""
        ended, begun = 0, None
        for line in lines:
            match = re.match(r"Test Case '(.+)' (started|passed|failed|skipped)\b", line)
            if not match:
                continue
            name, outcome = match[1], match[2]
            begun = name if outcome == "started" else None
            if outcome == "passed":
                self.passed += 1
            elif outcome == "failed":
                self.failed.append(name)
            elif outcome == "skipped":
                self.skipped.append(f"{name}: see its output")
            ended += outcome != "started"
        if begun:
            self.failed.append(f"{begun}: never ended")
        return ended

    def report(self):
        for title, names in (("skipped", self.skipped), ("failed", self.failed)):
            for name in names:
                print(f"{title}: {name}")
        runs, times = count_second_tries(self.second)
        for name, has_passed in sorted(self.second.items()):
            outcome = "passed" if has_passed else "failed"
            print(f"second try: {name}: {outcome}; needed in {times[name]} of {runs} runs here")
        print(f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped", flush=True)
        return 1 if self.failed or self.passed == 0 else 0


def read_lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readlines()


def count_second_tries(tests, path=HISTORY):
    """Adds a run with these tests to the history; returns how many runs it has, and how often each test was run twice."""
    runs, times = 0, {}
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
        runs, times = int(known["runs"]), {str(name): int(count) for name, count in known["tests"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # the first run, or a file of another version
    runs += 1
    for name in tests:
        times[name] = times.get(name, 0) + 1
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"runs": runs, "tests": times}, file, indent=1, sort_keys=True)
    return runs, times


def say(words):
    print(f"tests: {words}", flush=True)


def call(command, minutes=MINUTES):
    """Runs a command in a session of its own, its output shown as it comes; returns its code and its lines.

    After so many minutes it is ended.

    What it leaves running is ended: a test process that crashes cannot stop its servers.
    """
    say(" ".join(command))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    timer = threading.Timer(minutes * 60, end_session, [process.pid])
    timer.start()
    lines = []
    try:
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line)
        return process.wait(), lines
    finally:
        timer.cancel()
        end_session(process.pid)


def end_session(session):
    for process in processes(session):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def processes(session):
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                if int(file.read().rsplit(")", 1)[1].split()[3]) == session:
                    yield int(entry)
        except (OSError, ValueError, IndexError):
            continue  # not a process, or one that has just gone


def build(tally):
    """Builds all tests in debug; gives whether that worked."""
    code, _ = call(["swift", "build", "--build-tests"])
    if code != 0:
        tally.failed.append("the debug tests do not build")
    return code == 0


class IdleBuild:
    """The build of the tests that run in release, in the time that the tests before them leave: those wait a lot."""

    def __init__(self, targets):
        self.output = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            ["swift", "build", "--build-tests", *RELEASE], stdout=self.output, stderr=subprocess.STDOUT,
            start_new_session=True, env={**os.environ, "XMPPTAP_TEST_TARGETS": ",".join(targets)})
        atexit.register(end_session, self.process.pid)
        self.schedule(os.SCHED_IDLE, nice=19)

    def schedule(self, policy, nice):
        # A session is a group of its own for the scheduler, if the kernel groups them.
        with contextlib.suppress(OSError), open(f"/proc/{self.process.pid}/autogroup", "w", encoding="ascii") as file:
            file.write(str(nice))
        for process in processes(self.process.pid):
            with contextlib.suppress(OSError):
                os.sched_setscheduler(process, policy, os.sched_param(0))

    def finish(self, tally):
        """Waits until the build ends, for which it now gets all the time; gives whether it worked."""
        say("the build in release")
        self.schedule(os.SCHED_OTHER, nice=0)
        try:
            code = self.process.wait(MINUTES * 60)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            end_session(self.process.pid)
        self.output.seek(0)
        sys.stdout.write(self.output.read())
        self.output.close()
        if code != 0:
            tally.failed.append("the release tests do not build")
        return code == 0


def run(tally, name, flags, select, minutes=MINUTES):
    """Runs tests that are built; whatever goes wrong ends up in the tally."""
    with tempfile.TemporaryDirectory() as folder:
        events = os.path.join(folder, "events.jsonl")
        failures = len(tally.failed)
        code, lines = call(
            ["swift", "test", "--skip-build", *flags, *select,
             "--event-stream-output-path", events],
            minutes)
        others = tally.read_xctest(lines)
        ended = tally.read_events(events, name)
        if ended is None:
            tally.failed.append(f"the {name} run did not come to its end (code {code})")
        elif ended + others == 0:
            tally.failed.append(f"the {name} run ran no test")
        elif code != 0 and len(tally.failed) == failures:
            tally.failed.append(f"the {name} run failed with code {code} and no failed test")


def run_apart(tally, name, flags, select):
    """Runs tests that talk to other programs, a few at once; the few that fail are run again, in order."""
    before = len(tally.failed)
    run(tally, name, flags, ["--experimental-maximum-parallelization-width", str(AT_ONCE), *select])
    failed = tally.failed[before:]
    if not 0 < len(failed) <= SECOND_TRIES or any(test not in tally.identifiers for test in failed):
        return
    # The identifier without its file and line, as a pattern.
    tests = "|".join(re.escape(tally.identifiers[test].rsplit("/", 1)[0]) for test in failed)
    again = Tally()
    run(again, f"second try of {name}", flags, ["--no-parallel", "--filter", f"^({tests})"])
    # One that was not run again, or not to its end, has failed.
    is_whole = again.passed + len(again.failed) == len(failed)
    tally.second.update({name: is_whole and name not in again.failed for name in failed})
    if again.passed != len(failed) or again.failed:
        return
    del tally.failed[before:]
    tally.passed += len(failed)


def long_targets():
    """The test targets with tests that run in release, by the names of their types."""
    found = set()
    for folder, _, files in os.walk("Tests"):
        parts = folder.split(os.sep)
        for name in files:
            if len(parts) > 1 and parts[1].endswith("Tests") and name.endswith(".swift"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    if re.search(rf"\b(struct|class|enum|actor) \w*{LONG}\b", file.read()):
                        found.add(parts[1])
    return sorted(found)


def skip(*names):
    return [word for name in names for word in ("--skip", name)]


def main():
    tally = Tally()
    # What talks over sockets and waits for other programs runs by itself: beside the tests that use both cores it would be
    # judged by the machine's load.
    apart = ["TapNetworkTests", "TapControlTests", "EndToEndTests"]
    is_built = build(tally)
    if is_built:
        run(tally, "debug", [], skip(LONG, *apart))
    # The rest of the tests, which take as long to build as the program, are not built twice.
    release = IdleBuild([name for name in long_targets() if name not in apart])
    if is_built:
        for name in apart:
            run_apart(tally, f"debug {name}", [], ["--filter", name, *skip(LONG)])
    if release.finish(tally):
        run(tally, "release", RELEASE, ["--filter", LONG, *skip(*apart)])
        os.environ["XMPPTAP_PROGRAM"] = os.path.abspath(os.path.join(".build-release-tests", "release", "xmpptap"))
        run_apart(tally, "release program", [], ["--filter", f"EndToEndTests.*{LONG}"])
    return tally.report()


if __name__ == "__main__":
    sys.exit(main())
