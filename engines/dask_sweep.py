#!/usr/bin/env python3
"""Runs the remaining cells of an experiment on a Dask cluster, each task as `spdy lab cell` into one store.

    dask_sweep.py loss.toml --store postgres://lab@db.example/loss --scheduler tcp://head:8786

Workers need the program, the experiment's file at the same path, and access to the store: PGPASSWORD in their
environment, because a cluster shows the arguments of its tasks: a URL with a password is rejected. A task that fails, or
whose worker dies, is repeated; cells that are in the store are not loaded again.
"""

import argparse
import json
import re
import subprocess
import sys

from dask.distributed import Client, as_completed

# Matches a possible password in the URL of a store.
PASSWORD = re.compile(r"postgres(ql)?://([^/?]*:.*@|.*[?&]password=)", re.DOTALL)


class SpdyFailed(Exception):
    """The program's error output, without its command line."""


def output_of(command):
    """The output of `command`."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise SpdyFailed(done.stderr.strip() or f"spdy ended with {done.returncode}")
    return done.stdout


def missing_cells(spdy, experiment, store):
    """Numbers of the cells that are not in the store."""
    cells = [spdy, "lab", "cells", experiment, "--store", store, "--json"]
    return [str(json.loads(line)["number"]) for line in output_of(cells).splitlines()]


def load(cells, spdy, experiment, store):
    """One task, on a worker."""
    output_of([spdy, "lab", "cell", experiment, *cells, "--store", store, "--jobs", "1", "--quiet"])


def at_least(least):
    """A parser for integers from `least`."""

    def number(text):
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"found {text}, expected {least} or more")
        return int(text)

    return number


def shared_store(text):
    """The store `text`, if its URL has no password."""
    if PASSWORD.match(text):
        raise argparse.ArgumentTypeError("the URL may hold a password, which the cluster would show: use PGPASSWORD")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", help="a shipped name, or a TOML file that workers can read")
    parser.add_argument("--store", type=shared_store, required=True, help="postgres:// URL that workers can reach")
    parser.add_argument("--scheduler", required=True, help="address of the cluster's scheduler")
    parser.add_argument("--spdy", default="spdy", help="path of the program on workers")
    parser.add_argument("--cells", type=at_least(1), default=1, help="cells per task")
    retries = "how often to repeat a failed task"
    parser.add_argument("--retries", type=at_least(0), default=3, help=retries)
    args = parser.parse_args()
    what = (args.spdy, args.experiment, args.store)

    cells = missing_cells(*what)
    tasks = [cells[at : at + args.cells] for at in range(0, len(cells), args.cells)]
    with Client(args.scheduler) as client:
        futures = [client.submit(load, task, *what, retries=args.retries, pure=False) for task in tasks]
        for done, future in enumerate(as_completed(futures), start=1):
            if future.status != "finished":
                print(f"failed: {future.exception()}", file=sys.stderr)
            print(f"{done} of {len(tasks)} tasks", file=sys.stderr, flush=True)
    return f"{len(cells)} cells remain" if (cells := missing_cells(*what)) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (SpdyFailed, OSError) as failed:
        sys.exit(str(failed))
