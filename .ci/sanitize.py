"""Runs the unit tests under the thread sanitizer, then under the address sanitizer.

    python3 .ci/sanitize.py [thread] [address] [TEST ...]

Both sanitizers unless named, and all unit tests unless named (a target, a suite, or what else `swift test --filter` takes). If only
targets are named, nothing else is built.
Each run has one closing line; exit 1 where a sanitizer reported anything or a test failed. The build folders .build-thread
and .build-address are kept. The builds are release builds, in which the LongTests end in time too.

Under the thread sanitizer tsan-swift.c is built and loaded too, without which it reports races that are none, in debug and
in release. LeakSanitizer stays off, since it reports what the test libraries keep until the process ends. Before the tests
a small program has to pass, and one with a planted error has to be reported.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile
import time

import tally

HERE = os.path.dirname(os.path.abspath(__file__))
# A build takes about 10 minutes of two idle cores, and others may use them too.
MINUTES = 60
# Test targets that are left out: they mostly wait for other programs, which run without a sanitizer.
APART = ["EndToEndTests", "TapNetworkTests"]
# The product of all test targets.
PRODUCT = "xmpptapPackageTests"
# A run under the thread sanitizer ends as its tests end: what was reported is counted here. LeakSanitizer is part of the
# address sanitizer.
OPTIONS = {"thread": ("TSAN_OPTIONS", "halt_on_error=0:exitcode=0"), "address": ("ASAN_OPTIONS", "detect_leaks=0")}
# The standard library writes a count of 0 over the 0 in the one empty array.
SUPPRESSIONS = "race:_swiftEmptyArrayStorage\n"
REPORT = re.compile(r"^(?:==\d+==)?(?:WARNING|ERROR): (?:Thread|Address)Sanitizer: ", re.MULTILINE)

# Programs that are right, and what is put in to make them wrong.
PROGRAMS = {
    "thread": ("""
        import Dispatch
        import Glibc
        import Synchronization
        final class Shared: @unchecked Sendable {
            let list = Mutex<[Int]>([])
            let sum = Mutex(0)
            var open = 0
        }
        let shared = Shared()
        DispatchQueue.concurrentPerform(iterations: 8) { number in
            for round in 0..<20_000 {
                ERROR
                if number % 2 == 0 {
                    shared.list.withLock { list in
                        if list.count > 50 { list.removeAll(keepingCapacity: true) }
                        list.append(round)
                    }
                } else {
                    let copy = shared.list.withLock { $0 }
                    let sum = copy.reduce(0, +)
                    shared.sum.withLock { $0 += sum }
                }
            }
        }
        func resumedEarly() async -> [Int] {
            await withUnsafeContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: [1]) }
                usleep(2_000)
            }
        }
        for _ in 0..<20 { print(await resumedEarly().count) }
        """, "shared.open += 1"),
    "address": ("""
        let place = UnsafeMutablePointer<Int>.allocate(capacity: CommandLine.arguments.count)
        place[0] = 1
        ERROR
        place.deallocate()
        """, "place[CommandLine.arguments.count] = 1"),
}


def check(name, folder):
    """Why this sanitizer is not to be trusted on this machine; None where it tells right from wrong."""
    program, error = PROGRAMS[name]
    for title, text in (("right", ""), ("wrong", error)):
        path = os.path.join(folder, title)
        with open(path + ".swift", "w", encoding="utf-8") as file:
            file.write(program.replace("ERROR", text))
        build = subprocess.run(
            ["swiftc", "-O", f"-sanitize={name}", path + ".swift", "-o", path], capture_output=True, text=True, check=False)
        if build.returncode != 0:
            return f"a program does not build with it: {build.stderr.strip()}"
        run = subprocess.run([path], capture_output=True, check=False)
        reports = take_reports(folder)
        if title == "right" and (reports or run.returncode != 0):
            return f"it reports a program that is right:\n{''.join(reports)}"
        if title == "wrong" and not reports:
            return "it does not report a program that is wrong"
    return None


def take_reports(folder):
    """The reports of all processes since the last call."""
    reports = []
    for path in sorted(glob.glob(os.path.join(folder, "report.*"))):
        text = "".join(tally.read_lines(path))
        starts = [match.start() for match in REPORT.finditer(text)] or [0]
        reports += [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)])]
        os.remove(path)
    return reports


def prepare(name, folder):
    """Sets what every process under this sanitizer inherits."""
    variable, options = OPTIONS[name]
    # Each process writes its reports to a file of its own, also one that a test has started.
    os.environ["XMPPTAP_SANITIZER"] = name
    os.environ[variable] = f"{options}:log_path={os.path.join(folder, 'report')}"
    if name == "thread":
        suppressions = os.path.join(folder, "suppressions")
        with open(suppressions, "w", encoding="utf-8") as file:
            file.write(SUPPRESSIONS)
        os.environ[variable] += f":suppressions={suppressions}"
        library = os.path.join(folder, "tsan-swift.so")
        subprocess.run(
            ["clang", "-O1", "-fPIC", "-shared", os.path.join(HERE, "tsan-swift.c"), "-o", library, "-ldl"], check=True)
        os.environ["LD_PRELOAD"] = library


def is_target(name):
    return os.path.isdir(os.path.join("Tests", name)) and name.endswith("Tests")


def unit_tests():
    """A pattern of all test targets but those that run apart."""
    names = sorted(name for name in os.listdir("Tests") if is_target(name) and name not in APART)
    return rf"^({'|'.join(names)})\."


def sanitize(name, wanted):
    """Builds and runs the tests under one sanitizer; gives whether it found nothing."""
    began = time.monotonic()
    filters = [word for test in wanted for word in ("--filter", test)]
    if all(is_target(test) for test in wanted):
        # Read by the manifest. Without a product the program would be built too.
        os.environ["XMPPTAP_TEST_TARGETS"] = ",".join(wanted)
        product = PRODUCT
    else:
        product = None
    flags = ["-c", "release", "--scratch-path", f".build-{name}", "--sanitize", name, "-Xswiftc", "-enable-testing"]
    tests = tally.Tally()
    reports = []
    if tally.build(tests, name, flags, MINUTES, product):
        with tempfile.TemporaryDirectory() as folder:
            before = dict(os.environ)
            try:
                prepare(name, folder)
                doubt = check(name, folder)
                if doubt:
                    tests.failed.append(f"the {name} sanitizer: {doubt}")
                else:
                    tally.run(tests, f"{name} sanitizer", flags, filters, MINUTES)
                reports = take_reports(folder)
            finally:
                os.environ.clear()
                os.environ.update(before)
    for report in reports:
        print(report)
    for title, names in (("failed", tests.failed), ("skipped", tests.skipped)):
        for test in names:
            print(f"{title}: {test}")
    minutes = (time.monotonic() - began) / 60
    print(f"{name} sanitizer: {len(reports)} reports, {tests.passed} passed, {len(tests.failed)} failed,"
          f" {len(tests.skipped)} skipped in {minutes:.0f} min", flush=True)
    return not reports and not tests.failed and tests.passed > 0


def main():
    names = [word for word in sys.argv[1:] if word in OPTIONS] or list(OPTIONS)
    tests = [word for word in sys.argv[1:] if word not in OPTIONS] or [unit_tests()]
    return 0 if all([sanitize(name, tests) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
