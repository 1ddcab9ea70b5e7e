#!/usr/bin/env python3
"""Runs what is left of an experiment on a Dask cluster, each task as `spdy lab cell` into one store.

    dask_sweep.py loss.toml --store postgres://lab@db.example/loss --scheduler tcp://head:8786

Workers need the program, the experiment's file at the same path, and the way to the store (PGPASSWORD in their
environment). A task that fails, or whose worker dies, is done again; cells that are there already cost nothing.
"""

import argparse
import json
import subprocess
import sys

from dask.distributed import Client, as_completed


def left(spdy, experiment, store):
    """Numbers of the cells that the store has not yet."""
    cells = [spdy, "lab", "cells", experiment, "--store", store, "--json"]
    listed = subprocess.run(cells, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [str(json.loads(line)["number"]) for line in listed.splitlines()]


def load(cells, spdy, experiment, store):
    """One task, on a worker."""
    cell = [spdy, "lab", "cell", experiment, *cells, "--store", store, "--jobs", "1", "--quiet"]
    done = subprocess.run(cell, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", help="a shipped name, or a TOML file that workers see too")
    parser.add_argument("--store", required=True, help="postgres:// URL that workers reach too")
    parser.add_argument("--scheduler", required=True, help="address of the cluster's scheduler")
    parser.add_argument("--spdy", default="spdy", help="the program, as workers find it")
    parser.add_argument("--cells", type=int, default=1, help="cells to a task")
    parser.add_argument("--retries", type=int, default=3, help="times a task that failed is done again")
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
    sys.exit(main())
