#!/usr/bin/env python3
"""Every field of the messages between service and agents occurs in a seed of the corpus: what no seed has, no change of one reaches."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def names_in(value):
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names_in(inner)
    elif isinstance(value, str):
        yield value  # the kind of a message, say


def missing(target):
    source = (ROOT / f"src/wire/protocol_{target}.cpp").read_text()
    fields = set(re.findall(r'"([a-z][a-z_0-9]*)"', source))
    seeds = (ROOT / "tests/fuzz/corpus" / target).glob("*.json")
    found = set()
    for seed in seeds:
        try:
            found.update(names_in(json.loads(seed.read_text())))
        except ValueError:
            pass  # one that is malformed on purpose
    return sorted(fields - found)


def main():
    gaps = {target: missing(target) for target in ("from_agent", "to_agent")}
    for target, fields in gaps.items():
        if fields:
            print(f"error: no seed in tests/fuzz/corpus/{target} has: {', '.join(fields)}")
            print("try:   add each to a seed, with a value that the parser takes")
    return 1 if any(gaps.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
