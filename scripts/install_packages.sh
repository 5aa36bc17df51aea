#!/bin/sh
# install_packages.sh [build|aarch64|clang]
#
# Installs the Debian 12 packages that are missing: those of the build, those that make aarch64
# needs beside them, or those of the clang targets (make clang, fuzz, format, tidy). Does nothing,
# quickly, when all are there.
set -eu

case "${1:-build}" in
  build)
    packages="g++ cmake ninja-build pkg-config libfmt-dev libcli11-dev nlohmann-json3-dev
              liburing-dev libxxhash-dev libgtest-dev libgmock-dev libbenchmark-dev"
    ;;
  aarch64) packages="g++-aarch64-linux-gnu qemu-user" ;;
  clang) packages="clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev" ;;
  *) echo "usage: $0 [build|aarch64|clang]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "Not a Debian system: please see to these packages yourself:" $packages
  exit 0
fi

installed=$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' $packages 2>/dev/null |
  awk '$2 == "ii" { print $1 }') || true
missing=""
for package in $packages; do
  echo "$installed" | grep -qxF "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null; then
  as_root="sudo"
else
  echo "Missing packages, and neither root nor sudo to install them. As root, run:" >&2
  echo "  apt-get update && apt-get install -y$missing" >&2
  exit 1
fi
echo "Installing$missing"
$as_root apt-get -q update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing
