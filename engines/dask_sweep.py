#!/usr/bin/env python3
"""Runs what is left of an experiment on a Dask cluster, each task as `spdy lab cell` into one store.

    dask_sweep.py loss.toml --store postgres://lab@db.example/loss --scheduler tcp://head:8786

Workers need the program, the experiment's file at the same path, and the way to the store: PGPASSWORD in their
environment, for a cluster shows what its tasks are given, and a URL with a password is refused. A task that fails, or
whose worker dies, is done again; cells that are there already cost nothing.
"""

import argparse
import json
import re
import subprocess
import sys

from dask.distributed import Client, as_completed

# What may be a password in the URL of a store.
PASSWORD = re.compile(r"postgres(ql)?://([^/?]*:.*@|.*[?&]password=)", re.DOTALL)


class SpdyFailed(Exception):
    """What the program said; not how it was called."""


def said(command):
    """What `command` prints."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise SpdyFailed(done.stderr.strip() or f"spdy ended with {done.returncode}")
    return done.stdout


def left(spdy, experiment, store):
    """Numbers of the cells that the store has not yet."""
    cells = [spdy, "lab", "cells", experiment, "--store", store, "--json"]
    return [str(json.loads(line)["number"]) for line in said(cells).splitlines()]


def load(cells, spdy, experiment, store):
    """One task, on a worker."""
    said([spdy, "lab", "cell", experiment, *cells, "--store", store, "--jobs", "1", "--quiet"])


def at_least(least):
    """What reads a whole number of at least that much."""

    def number(text):
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text}: want {least} or more")
        return int(text)

    return number


def shared_store(text):
    """The store that `text` names, if anybody may see it."""
    if PASSWORD.match(text):
        raise argparse.ArgumentTypeError("the URL may hold a password, which the cluster would show: want PGPASSWORD")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", help="a shipped name, or a TOML file that workers see too")
    parser.add_argument("--store", type=shared_store, required=True, help="postgres:// URL that workers reach too")
    parser.add_argument("--scheduler", required=True, help="address of the cluster's scheduler")
    parser.add_argument("--spdy", default="spdy", help="the program, as workers find it")
    parser.add_argument("--cells", type=at_least(1), default=1, help="cells to a task")
    retries = "times a task that failed is done again"
    parser.add_argument("--retries", type=at_least(0), default=3, help=retries)
    args = parser.parse_args()
    what = (args.spdy, args.experiment, args.store)

    cells = left(*what)
    tasks = [cells[at : at + args.cells] for at in range(0, len(cells), args.cells)]
    with Client(args.scheduler) as client:
        futures = [client.submit(load, task, *what, retries=args.retries, pure=False) for task in tasks]
        for done, future in enumerate(as_completed(futures), start=1):
            if future.status != "finished":
                print(f"failed: {future.exception()}", file=sys.stderr)
            print(f"{done} of {len(tasks)} tasks", file=sys.stderr, flush=True)
    return f"{len(cells)} cells are left to do" if (cells := left(*what)) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (SpdyFailed, OSError) as failed:
        sys.exit(str(failed))
