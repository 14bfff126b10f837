# shellcheck shell=sh
# Ends a CUDA multi-process service. $1: nvidia-cuda-mps-control; $2: the folder of the service's pipes.
#
# `quit` waits for clients, and may go unheard after one that died badly. What is still there then is killed: it would hold
# on to its GPUs for good.
program=$1 folder=$2
export CUDA_MPS_PIPE_DIRECTORY="$folder"
# ask WORD SECONDS
ask() { echo "$1" | timeout -s KILL "$2" "$program" 2>/dev/null; }

# The daemon, which writes its number into a file, and its servers.
processes=$(cat "$folder/nvidia-cuda-mps-control.pid" 2>/dev/null; ask get_server_list 5)
# Those of them that are still there and no zombies. Where one has ended, another program may have got its number.
left() {
    for process in $processes; do
        { read -r _ name state _ <"/proc/$process/stat"; } 2>/dev/null || continue
        case $name$state in *Z) ;; "(nvidia-cuda-mps"*) echo "$process" ;; esac
    done
}
tries=200
ask quit 10 >/dev/null || tries=0
while [ "$tries" -gt 0 ] && [ -n "$(left)" ]; do
    sleep 0.05
    tries=$((tries - 1))
done
for process in $(left); do kill -KILL "$process"; done
