"""run.py, the runner of the tests, with a program that does what GoogleTest's programs do at their best and worst."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "run.py")

# A program with the cases of CASES, each `name=behaviour`.
PROGRAM = """\
#!/usr/bin/env python3
import os, re, signal, sys, time
cases = dict(pair.split("=") for pair in os.environ["CASES"].split())
if "--gtest_list_tests" in sys.argv:
    print("Suite.")
    for name in cases:
        print("  " + name)
    sys.exit()
with open(next(word.split("=")[1] for word in sys.argv if word.startswith("--gtest_flagfile="))) as flags:
    wanted = re.search("--gtest_filter=(.*)", flags.read())[1].split(":")
failed = False
for name, what in cases.items():
    if "Suite." + name not in wanted:
        continue
    print(f"[ RUN      ] Suite.{name}", flush=True)
    if what == "crashes" or what == "tires" and len(wanted) > 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "sleeps":
        open(os.environ["PLACE"], "w").write(str(os.getpid()))
        time.sleep(300)
    if what == "fails":
        print("expected 1, but got 2")
        failed = True
    print(f"[{dict(fails='  FAILED  ', skips='  SKIPPED ').get(what, '       OK ')}] Suite.{name} (3 ms)", flush=True)
sys.exit(7 if "leaves" in cases.values() else failed)
"""


class RunnerTest(unittest.TestCase):
    def prepare(self, build):
        """Makes a build folder with the program."""
        program = os.path.join(build, "program")
        with open(program, "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        os.chmod(program, 0o755)
        with open(os.path.join(build, "tests.txt"), "w", encoding="utf-8") as stream:
            stream.write(f"lit\tlit\ngtest\tfolder\t{program}\ttogether\ncommand\thouse/true\ttrue\n")
        os.mkdir(os.path.join(build, "test"))

    def run_cases(self, cases, *options):
        """The exit status and what is printed."""
        with tempfile.TemporaryDirectory() as build:
            self.prepare(build)
            done = subprocess.run([sys.executable, "-B", RUNNER, build, build, "-j", "1", *options], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, env={**os.environ, "CASES": cases}, check=False)
            return done.returncode, done.stdout

    def test_counts_what_passes_and_is_skipped(self):
        status, text = self.run_cases("A=passes B=skips")
        self.assertEqual(status, 0, text)
        self.assertTrue(text.endswith("2 passed, 0 failed, 1 skipped\n"), text)

    def test_shows_what_failed_and_how_to_run_it_alone(self):
        status, text = self.run_cases("A=passes B=fails C=passes")
        self.assertEqual(status, 1)
        for part in ("FAILED: folder/Suite.B\n", "expected 1, but got 2\n", "--gtest_filter='Suite.B'\n", "failed: folder/Suite.B\n",
                     "3 passed, 1 failed, 0 skipped\n"):
            self.assertIn(part, text)

    def test_goes_on_behind_a_crash(self):
        status, text = self.run_cases("A=passes B=crashes C=fails D=passes E=crashes")
        self.assertEqual(status, 1)
        for part in ("failed: folder/Suite.B\n", "failed: folder/Suite.C\n", "failed: folder/Suite.E\n", "Suite.B: ended by SIGSEGV",
                     "3 passed, 3 failed, 0 skipped\n"):
            self.assertIn(part, text)

    def test_a_crash_in_company_is_a_failure(self):
        status, text = self.run_cases("A=tires B=passes")
        self.assertEqual(status, 1)
        self.assertIn("failed: folder/Suite.A\n", text)

    def test_a_status_that_no_case_explains_is_a_failure(self):
        status, text = self.run_cases("A=passes B=leaves")
        self.assertEqual(status, 1)
        self.assertIn("ended with status 7 behind its last test", text)

    def test_picks_by_name(self):
        status, text = self.run_cases("Left=passes Right=fails", "-R", "^folder/", "-E", "Right$")
        self.assertEqual(status, 0, text)
        self.assertTrue(text.endswith("1 passed, 0 failed, 0 skipped\n"), text)
        self.assertEqual(self.run_cases("Left=passes", "-R", "nothing")[0], 1)
        self.assertEqual(self.run_cases("Left=passes", "-R", "(")[0], 2)

    def test_an_interrupt_ends_the_tests_too(self):
        with tempfile.TemporaryDirectory() as build:
            self.prepare(build)
            place = os.path.join(build, "place")
            runner = subprocess.Popen([sys.executable, "-B", RUNNER, build, build, "-R", "folder"], stdout=subprocess.DEVNULL,
                                      env={**os.environ, "CASES": "A=sleeps", "PLACE": place})
            while not os.path.exists(place) or not os.path.getsize(place):
                time.sleep(0.05)
            with open(place, encoding="utf-8") as stream:
                child = int(stream.read())
            runner.send_signal(signal.SIGINT)
            self.assertEqual(runner.wait(), 128 + signal.SIGINT)
            for _ in range(100):  # its parent is gone: whoever adopts it takes a moment
                state = subprocess.run(["ps", "-o", "state=", "-p", str(child)], capture_output=True, text=True, check=False).stdout
                if state.strip() in ("", "Z"):
                    return
                time.sleep(0.05)
            self.fail("the test still runs")

    def test_prints_names(self):
        self.assertEqual(self.run_cases("A=fails", "-N", "-R", "folder"), (0, "folder/Suite.A\n"))


if __name__ == "__main__":
    unittest.main()
