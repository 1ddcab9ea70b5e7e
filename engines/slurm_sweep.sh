#!/bin/bash
# One task of a Slurm job array: every Nth cell of an experiment, by `spdy lab cell`.
#
#   sbatch --array=1-100 slurm_sweep.sh loss.toml postgres://lab@db.example/loss
#   sbatch --array=1-100 slurm_sweep.sh loss.toml            each task writes its file: loss-K.db
#
# With files, merge them at the end: `spdy lab merge loss-*.db --store all.db`. Nodes need the
# program (path in SPDY), the experiment's file, and access to the store: PGPASSWORD in the environment, which sbatch
# passes on. The queue shows command lines, so a URL with a password is rejected. The same command again runs
# the remaining cells, also after failed tasks.
#SBATCH --job-name=spdy-lab
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=spdy-lab-%A_%a.log
set -euo pipefail

if (($# < 1 || $# > 2)); then
  echo "usage: sbatch --array=1-N $0 EXPERIMENT [STORE]" >&2
  exit 2
fi
# Parts are numbered by the array's indexes, so an array that does not start at 1 or has gaps would omit cells.
if [[ ${SLURM_ARRAY_TASK_MIN:-} != 1 || ${SLURM_ARRAY_TASK_MAX:-} != "${SLURM_ARRAY_TASK_COUNT:-}" ]]; then
  echo "expected --array=1-N; cells that are in the store are not loaded again" >&2
  exit 2
fi
password='^postgres(ql)?://([^/?]*:.*@|.*[?&]password=)'
if [[ ${2:-} =~ $password ]]; then
  echo "the store's URL may hold a password, which the queue shows: use PGPASSWORD" >&2
  exit 2
fi
experiment=$1
store=${2:-$(basename "$experiment" .toml)-$SLURM_ARRAY_TASK_ID.db}
exec "${SPDY:-spdy}" lab cell "$experiment" --store "$store" --jobs "${SLURM_CPUS_PER_TASK:-1}" \
  --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
