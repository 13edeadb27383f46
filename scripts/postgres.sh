#!/bin/sh
# PostgreSQL's programs for the tests, which start a server of their own with them (tests/app/store/conftest.py).
# Where they are missing and apt-get may be used, Debian's package is installed, once; its own server stays off.
# 0: they are there; 1: they are not.
set -u

found() {
  command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

add() {
  apt-get update || return
  apt-get install -y --no-install-recommends postgresql-common || return
  # The package would make a cluster and start it, which nobody asked for.
  echo "create_main_cluster = false" >>/etc/postgresql-common/createcluster.conf
  apt-get install -y --no-install-recommends postgresql
}

found && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  add >/dev/null 2>&1
fi
found && exit 0
echo "no PostgreSQL here (Debian: apt-get install postgresql)" >&2
exit 1
