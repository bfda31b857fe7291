"""Uses a wheel in a mount namespace without compilers, LLVM and Kiln's tree: `bare_wheel.py ROOT BUILD FOLDER`, where FOLDER
has the wheel and tuned.so. It calls itself in the namespace: `bare_wheel.py inside`."""

import array
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile


def kilnc(*words, status=0):
    """What the wheel's kilnc prints."""
    done = subprocess.run([sys.executable, "-m", "kiln", *words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def inside():
    """The checks, in the folder that has the package and tuned.so."""
    for name in ("c++", "cc", "clang", "gcc", "llvm-config-22", "kilnc"):
        assert shutil.which(name) is None, name
    import kiln
    x, out = array.array("f", range(3000)), array.array("f", [0] * 3000)
    scale = kiln.load("tuned.so").scale
    for device in ("cpu", "simulator:sm_90a"):
        with kiln.open(device):
            scale[lambda config: kiln.cdiv(3000, config["block"])](x, out)
        assert list(out) == [3 * i for i in range(3000)]
        out = array.array("f", [0] * 3000)
    assert kiln.ops.softmax(array.array("f", [1, 1]))[0] == 0.5

    arguments = ["tuned.so", "--kernel=scale", "--args=x=f32[3000], out=f32[3000]", "--grid=out.0/block"]
    assert "best of 8 configs" in kilnc(*arguments, "--tune", "--device=simulator:sm_80", "-o", "found.txt")
    assert "default config" in kilnc(*arguments, "--bench", "--against=block=64", "--repeat=3")
    kilnc(*arguments, "--run", "--device=simulator:sm_80", "--report", "report.html")
    assert os.path.getsize("report.html") > 10000 and os.path.getsize("found.txt") > 50
    need = "requires a compiler, but '{}' cannot be run"
    assert need.format("c++") in kilnc("other.cc", "--list", status=3)
    assert need.format("cc") in kilnc(*arguments[:2], "--args=f32[?], f32[?]", "--emit=archive", "-o", "archive", status=3)
    print("the wheel works")


def main():
    root, build, folder = sys.argv[1:]
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        print("skipped: a mount namespace is not permitted here")
        return
    with tempfile.TemporaryDirectory() as place:  # outside of the hidden folders
        wheel, = glob.glob(f"{folder}/*.whl")
        zipfile.ZipFile(wheel).extractall(place)
        for path in (f"{folder}/tuned.so", __file__):
            shutil.copy(path, place)
        with open(f"{place}/other.cc", "w") as file:
            file.write("// nothing\n")
        os.mkdir(f"{place}/bin")
        folders = [build, root, *glob.glob("/usr/lib/llvm*"), *glob.glob("/usr/lib/gcc*"), "/usr/include"]
        hidden = [f"mount -t tmpfs none {shlex.quote(each)}" for each in folders if os.path.isdir(each)]
        libraries = {os.path.realpath(each) for name in ("LLVM", "MLIR", "clang", "fmt")
                     for each in glob.glob(f"/usr/lib/*/lib{name}*.so*")}
        hidden += [f"mount --bind /dev/null {shlex.quote(each)}" for each in sorted(libraries)
                   if os.path.exists(each) and not each.startswith(tuple(folders))]
        call = ["env", "-i", f"PATH={place}/bin", f"PYTHONPATH={place}", f"HOME={place}", f"KILN_CACHE={place}/cache",
                os.path.realpath(sys.executable), "-B", f"{place}/bare_wheel.py", "inside"]
        script = " && ".join([*hidden, f"cd {shlex.quote(place)}", shlex.join(call)])
        sys.exit(subprocess.run(["unshare", "--mount", "sh", "-c", script]).returncode)


if sys.argv[1:] == ["inside"]:
    inside()
else:
    main()
