"""Makes a wheel of one module, as a build would: `wheel.py OUT.whl`."""

import sys
import zipfile

FILES = {
    "greeting.py": 'def hello(who):\n    return f"hello, {who}"\n',
    "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
    "greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: by-hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
RECORD = "greeting-1.0.dist-info/RECORD"

with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name, text in FILES.items():
        wheel.writestr(name, text)
    # The digests that may stand here are left out, as the format allows.
    wheel.writestr(RECORD, "".join(f"{name},,\n" for name in [*FILES, RECORD]))
