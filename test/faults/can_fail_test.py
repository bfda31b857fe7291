"""The fault finders can find a fault: in trainers with a known fault in place of gpt2, and in a program of known behaviour
whose system calls fail."""

import errno
import os
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))

# A program that saves a "checkpoint" of two small files after each step, in the way SAVE.
TRAINER = '''#!{python}
import json, os, sys
words = sys.argv[1:]
value = lambda flag: words[words.index(flag) + 1]
out, steps = value("--out"), int(value("--steps"))
os.makedirs(out, exist_ok=True)
os.makedirs(os.environ["KILN_CACHE"], exist_ok=True)
for name in "ab":
    open(os.environ["KILN_CACHE"] + "/" + name, "w").close()
done = max([int(name[11:]) for name in os.listdir(out) if name.startswith("checkpoint-")], default=0)
try:
    rows = open(out + "/log.jsonl").readlines()[:done]
except FileNotFoundError:
    rows = []
with open(out + "/log.jsonl.new", "w") as log:
    log.writelines(rows)
os.rename(out + "/log.jsonl.new", out + "/log.jsonl")
for step in range(done + 1, steps + 1):
    with open(out + "/log.jsonl", "a") as log:
        log.write(json.dumps({{"step": step}}) + "\\n")
    final = f"{{out}}/checkpoint-{{step:08}}"
    {save}
'''
WRITE = "[open(f'{{{0}}}/{{name}}', 'w').write(f'{{name}} {{step}}') for name in ('model', 'training')]"
ASIDE = ("import shutil; aside = out + '/.aside'; shutil.rmtree(aside, True); os.mkdir(aside); "
         + WRITE.format("aside") + "; os.rename(aside, final)")
IN_PLACE = "os.mkdir(final); " + WRITE.format("final")


class CanFail(unittest.TestCase):
    def setUp(self):
        self.build = os.path.realpath(self.enterContext(tempfile.TemporaryDirectory()))
        os.mkdir(self.build + "/bin")
        os.symlink(CALLS, self.build + "/lib")

    def program(self, name, text):
        path = f"{self.build}/bin/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def faults(self, *kinds):
        return subprocess.run([sys.executable, "-B", FOLDER + "/faults.py", "--build", self.build, "--quick", *kinds],
                              capture_output=True, text=True, check=False)

    def kills(self, save):
        self.program("gpt2", TRAINER.format(python=sys.executable, save=save))
        return self.faults("kills")

    def test_a_trainer_that_saves_aside_loses_nothing(self):
        result = self.kills(ASIDE)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("lost 0, signals 0, hangs 0, wrong exit codes 0", result.stdout)

    def test_a_trainer_that_saves_in_place_is_found(self):
        result = self.kills(IN_PLACE)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("is not the undisturbed run's", result.stdout)
        self.assertRegex(result.stdout, r"again: tools/faults kills --seed 1 --case \d+ --quick")

    def failing(self, what, at):
        """Copies a file while the call number `at` on the copy fails."""
        with tempfile.TemporaryDirectory() as folder:
            source, copy = folder + "/source", os.path.realpath(folder) + "/watched/copy"
            os.mkdir(os.path.dirname(copy))
            with open(source, "w", encoding="utf-8") as file:
                file.write("some text\n" * 1000)
            result = subprocess.run(
                [sys.executable, "-c", COPY, source, copy], capture_output=True, text=True, check=False,
                env={"LD_PRELOAD": CALLS + "/libfailing_calls.so", "FAULT_FOLDERS": os.path.dirname(copy),
                     "FAULT_AT": str(at), "FAULT_WHAT": str(what), "FAULT_TRACE": folder + "/trace"})
            with open(folder + "/trace", encoding="utf-8") as trace:
                calls = [line.split()[1] for line in trace]
            size = os.path.getsize(copy) if os.path.exists(copy) else -1
        return result, calls, size

    def test_calls_fail_as_they_are_told(self):
        result, calls, size = self.failing("0", 0)
        self.assertEqual((result.returncode, size), (0, 10000))
        write = calls.index("write") + 1
        for at, what, reason in ((1, errno.EACCES, "EACCES"), (write, errno.ENOSPC, "ENOSPC"),
                                 (calls.index("close") + 1, errno.EIO, "EIO"), (1, "full", "ENOSPC")):
            result, _, size = self.failing(what, at)
            self.assertEqual(result.stdout.strip(), reason, result.stderr)
        result, _, size = self.failing("short", write)
        self.assertEqual((result.stdout.strip(), size), ("short by 5000", 5000))
        result, _, size = self.failing("kill", write)
        self.assertEqual((result.returncode, size), (-9, 0))


# Copies with the simplest calls, and reports failures.
COPY = """
import errno, os, sys
try:
    text = open(sys.argv[1], 'rb').read()
    copy = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
    wrote = os.write(copy, text)
    os.close(copy)
    if wrote < len(text):
        print('short by', len(text) - wrote)
except OSError as error:
    print(errno.errorcode[error.errno])
"""

if __name__ == "__main__":
    CALLS = os.path.abspath(sys.argv.pop(1))  # the folder with libfailing_calls.so
    unittest.main()
