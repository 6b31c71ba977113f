#!/usr/bin/env bash
# Builds wheels of the Python package, one for each system, for Python 3.10 and later. It publishes nothing.
#
#   crates/python/scripts/wheels.sh linux      x86-64 and arm64, for glibc 2.17 and later; needs pip's maturin and ziglang
#   crates/python/scripts/wheels.sh macos      arm64 and x86-64 in one; on a Mac
#   crates/python/scripts/wheels.sh windows    x86-64; on Windows, or elsewhere with `cargo install cargo-xwin`
#
# Wheels are in `target/wheels`.
set -euo pipefail
cd "$(dirname "$0")/.."

build() { maturin build --release "$@"; }

case "${1:-}" in
  linux)
    for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
      rustup target add "$target"
      build --zig --compatibility manylinux2014 --target "$target"
    done
    ;;
  macos)
    rustup target add aarch64-apple-darwin x86_64-apple-darwin
    build --target universal2-apple-darwin
    ;;
  windows)
    rustup target add x86_64-pc-windows-msvc
    build --target x86_64-pc-windows-msvc
    ;;
  *)
    sed -n '2,8p' "$0" | cut -c3-
    exit 2
    ;;
esac
