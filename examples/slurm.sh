#!/usr/bin/env bash
# Runs one program of this workspace under Slurm, one PE for each GPU of each node:
#
#   sbatch examples/slurm.sh target/release/ring --backend nvshmem
#   sbatch --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 examples/slurm.sh target/release/ring --backend nvshmem
#
# The nodes are used alone: PEs that share a GPU need MPS, which the administrator of a cluster has to offer.
#SBATCH --job-name=onesided
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=00:10:00
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: sbatch $0 PROGRAM ARGUMENTS" >&2; exit 2; }

# PE 0 runs on the first node and listens there for the others. The name of the job keeps two jobs apart that picked the
# same port.
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export ONESIDED_RENDEZVOUS=$first:$((20000 + SLURM_JOB_ID % 10000))/$SLURM_JOB_ID
# What the PEs of this job know and nobody else: they prove it to each other when they meet. srun passes it on.
ONESIDED_KEY=${ONESIDED_KEY:-$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')}
export ONESIDED_KEY
# Nodes start their tasks at different times.
export ONESIDED_TIMEOUT=${ONESIDED_TIMEOUT:-120}

# Where a `onesided` lies beside the program, it first says what it finds on each node.
onesided=$(dirname "$1")/onesided
[ ! -x "$onesided" ] || srun --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --label "$onesided" doctor

# Every task sees all GPUs of its node, and takes the one of its number there: NVSHMEM reaches a peer's memory only where
# both see the peer's GPU. When one task fails, Slurm ends the others.
srun --gpu-bind=none --kill-on-bad-exit=1 --label "$@"
