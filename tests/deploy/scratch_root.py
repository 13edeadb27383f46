"""The Dockerfile's steps carried out without an engine: in a root of their own, by the kernel's namespaces.

In place of the base image `python:X-slim` stands a root with this machine's /usr and, at /usr/local, the
Python that runs the tests. What is written to /usr/local and /etc goes to a layer on top and never to this
machine. So this shows that each step works and that what it leaves behind serves, read-only and as another
user; it does not show what else is in the real base image. Needs root, and tools of util-linux, iproute2 and
passwd. A step that it does not know is an error, so that none is passed over.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Self

from docker.utils.build import exclude_paths

from tests.deploy.dockerfile import ROOT, Instruction, Stage, expand

TOOLS = ("bash", "unshare", "nsenter", "setpriv", "ip", "useradd", "mount", "chroot")

BASE_ENV = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}
_NETWORK = re.compile(r"^(PIP_|SSL_|REQUESTS_CA|.*_PROXY$|.*_proxy$)")
"""How this machine reaches its package index: the only thing of the environment that a step gets."""

RUNS_ELSEWHERE = frozenset({"VOLUME", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"})
"""What says how the image is run, and does nothing while it is built."""

_MOUNTS = r"""
set -e
root=$1 python=$2
mount --bind "$root" "$root"
for name in usr etc proc dev layers tmp root var/lib; do mkdir -p "$root/$name"; done
chmod 1777 "$root/tmp"
for name in bin sbin lib lib32 lib64; do
  if [ -L "/$name" ]; then ln -sfn "$(readlink "/$name")" "$root/$name"
  elif [ -d "/$name" ]; then mkdir -p "$root/$name"; mount --rbind "/$name" "$root/$name"; fi
done
mount --rbind /usr "$root/usr"
mount -o remount,bind,ro "$root/usr"
mount --rbind /dev "$root/dev"
mount --bind /proc "$root/proc"
mount -t tmpfs -o mode=0755 layers "$root/layers"
for name in etc local; do mkdir "$root/layers/$name" "$root/layers/$name.work"; done
mount -t overlay -o "lowerdir=/etc,upperdir=$root/layers/etc,workdir=$root/layers/etc.work" etc "$root/etc"
mount -t overlay -o "lowerdir=$python,upperdir=$root/layers/local,workdir=$root/layers/local.work" \
  local "$root/usr/local"
chroot "$root" /sbin/ldconfig
echo mounted
exec sleep infinity
"""


def missing() -> str | None:
    """Why this machine cannot do it; None: it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs Linux and root"
    without = [tool for tool in TOOLS if shutil.which(tool) is None]
    if without:
        return f"needs {', '.join(without)}"
    allowed = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "true"], capture_output=True)
    return "needs the right to make namespaces" if allowed.returncode else None


class Root:
    """A root file system in a mount namespace that lasts as long as this; use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.env: dict[str, str] = dict(BASE_ENV)
        self.cwd = "/"

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True)
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNTS, "mounts"]
        self._holder = subprocess.Popen([*argv, str(self.path), sys.base_prefix], stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"mounted\n":
            self.__exit__()
            raise RuntimeError("the scratch root could not be mounted")
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.kill()
        self._holder.communicate()

    def outside(self, *argv: str) -> list[str]:
        """A command in the namespace whose root is still this machine's: for mounts and copies."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--", *argv]

    def do(self, *argv: str) -> None:
        subprocess.run(self.outside(*argv), check=True)

    def shell(self, script: str, env: Mapping[str, str]) -> None:
        """A RUN: by /bin/sh, as root, in the working directory."""
        command = f"cd {self.cwd} && {script}"
        argv = self.outside("chroot", str(self.path), "/bin/sh", "-c", command)
        network = {key: value for key, value in os.environ.items() if _NETWORK.match(key)}
        done = subprocess.run(argv, env={**network, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"RUN {script}\n{done.stdout.decode(errors='replace')[-4000:]}"


def build(stage: Stage, root: Root, made: Mapping[str, Root], arguments: Mapping[str, str]) -> None:
    """Carry out a stage's steps; `made`: the stages before it, by name. `arguments`: as --build-arg."""
    assert re.fullmatch(r"python:\d+\.\d+-slim", stage.base), f"this root does not stand for {stage.base}"
    declared: dict[str, str] = {}
    for step in stage.steps:
        if step.name == "ARG":
            key, _, default = step.rest.partition("=")
            declared[key] = arguments.get(key, default.strip('"'))
        elif step.name == "RUN":
            root.shell(step.rest, {"HOME": "/root", **root.env, **declared})
        elif step.name == "ENV":
            pairs = (word.partition("=") for word in step.words())
            root.env.update({key: expand(value, root.env) for key, _, value in list(pairs)})
        elif step.name == "WORKDIR":
            root.cwd = step.rest
            root.do("mkdir", "-p", f"{root.path}{root.cwd}")
        elif step.name == "COPY":
            _copy(step, root, made)
        else:
            assert step.name in RUNS_ELSEWHERE, f"{step.name} is not carried out here"


@cache
def context() -> list[str]:
    """What a build is sent: the paths of all files that .dockerignore lets through."""
    lines = (line.strip() for line in (ROOT / ".dockerignore").read_text().splitlines())
    patterns = [line for line in lines if line and not line.startswith("#")]
    return sorted(path for path in exclude_paths(str(ROOT), patterns) if (ROOT / path).is_file())


def _copy(step: Instruction, root: Root, made: Mapping[str, Root]) -> None:
    """Of a folder its contents are copied, of a file the file; only what is in the context can be."""
    *sources, target = step.words()
    target = os.path.normpath(os.path.join(root.cwd, target)) + ("/" if target.endswith("/") else "")
    target = f"{root.path}{target}"
    if "from" in step.flags:
        (source,) = sources
        root.do("mkdir", "-p", target)
        root.do("cp", "-a", f"{made[step.flags['from']].path}{source}/.", target)
        return
    for source in sources:
        _copy_from_context(root, source, target)


def _copy_from_context(root: Root, source: str, target: str) -> None:
    inside = [path for path in context() if path == source or path.startswith(f"{source}/")]
    assert inside, f"COPY {source}: nothing in the context"
    for path in inside:
        beside = os.path.relpath(path, source) if path != source else ""
        place = os.path.join(target, beside or ("" if not target.endswith("/") else os.path.basename(path)))
        place = place.rstrip("/")
        root.do("install", "-D", "--mode=0644", str(ROOT / path), place)


def container_argv(root: Root, user: str, command: Sequence[str]) -> list[str]:
    """What starts `command` as process 1 of a container: own processes, own network, no capability at all."""
    uid, _, gid = user.partition(":")
    unshare = ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
    inside = [f"--root={root.path}", f"--wd={root.cwd}"]
    # `ip` needs the rights that `setpriv` then drops; both are replaced by what they start.
    up = 'ip link set lo up && exec setpriv --reuid="$1" --regid="$2" --clear-groups --no-new-privs'
    script = f'{up} --bounding-set=-all --inh-caps=-all -- "${{@:3}}"'
    return root.outside(*unshare, *inside, "/bin/bash", "-c", script, "container", uid, gid, *command)
