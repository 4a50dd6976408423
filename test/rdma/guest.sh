#!/bin/busybox sh
# Process 1 of the virtual machine: creates SoftRoCE devices, runs the steps, prints each verdict, and ends.
export PATH=/bin:/test
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
mount -t tmpfs none /tmp
only=$(sed -n 's/.*steps=\([^ ]*\).*/\1/p' /proc/cmdline)
for module in /modules/*; do
    insmod "$module" || echo "NOTE no module $module"
done
hostname guest
ip link set lo up
real-ip link add veth0 type veth peer name veth1
real-ip addr add 10.1.0.1/24 dev veth0
real-ip addr add 10.1.1.1/24 dev veth1
real-ip link set veth0 up
real-ip link set veth1 up
real-rdma link add rxe0 type rxe netdev veth0
real-rdma link add rxe1 type rxe netdev veth1
sleep 1
echo "NOTE $(real-rdma link show | tr '\n' ' ')"

export RONDO_TRANSPORTS=shm,rdma RONDO_DEVICE=host RANKS_WATCHDOG=200 RONDO_CONNECT_TIMEOUT=60

wanted() {
    [ -z "$only" ] && return 0
    for word in $(echo "$only" | tr ',' ' '); do
        case $1 in *$word*) return 0 ;; esac
    done
    return 1
}
# ranks "0 0 1" program arguments...: runs one rank on each of these hosts; status 0 if all succeed. Their output is in
# /tmp/out.RANK.
start_ranks() {
    places=$1
    shift
    size=$(echo $places | wc -w)
    job=$((job + 1))
    rank=0
    pids=""
    for place in $places; do
        RONDO_JOB=job$job RONDO_RANK=$rank RONDO_SIZE=$size RONDO_HOSTID=host$place "$@" >/tmp/out.$rank 2>&1 &
        pids="$pids $!"
        rank=$((rank + 1))
    done
}
end_ranks() {
    bad=0
    for pid in $pids; do
        wait "$pid" || bad=1
    done
    return $bad
}
ranks() {
    start_ranks "$@"
    end_ranks
}
verdict() { # name, status
    if [ "$2" -eq 0 ]; then
        echo "STEP $1 ok, at $(cut -d' ' -f1 /proc/uptime) s"
    else
        echo "STEP $1 FAILED, at $(cut -d' ' -f1 /proc/uptime) s"
        for file in /tmp/out.*; do
            tail -n 12 "$file" | sed "s#^#  | $file: #"
        done
    fi
    rm -f /tmp/out.*
}
step() { # name, places, program, arguments...
    name=$1
    shift
    wanted "$name" || return
    ranks "$@"
    verdict "$name" $?
}
# A fault: the result of every other rank must be an error (one of these codes), in time.
wait_for_word() { # file, word, seconds
    for i in $(seq 1 $(($3 * 5))); do
        grep -q "^$2" "$1" && return 0
        sleep 0.2
    done
    return 1
}
fault() { # name, places, what to do, ranks that must see it, arguments of faults
    name=$1
    seen=$4
    act=$3
    places_=$2
    shift 4
    wanted "$name" || return
    start_ranks "$places_" faults "$@"
    bad=0
    for rank in $seen; do
        wait_for_word /tmp/out.$rank READY 60 || bad=1
    done
    sleep 1
    before=$(cut -d. -f1 /proc/uptime)
    eval "$act"
    for rank in $seen; do
        wait_for_word /tmp/out.$rank RESULT 15 || bad=1
        grep -qE '^RESULT (8|9) ' /tmp/out.$rank || bad=1
    done
    after=$(cut -d. -f1 /proc/uptime)
    [ $((after - before)) -le 12 ] || bad=1
    for pid in $pids; do
        kill -9 "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    verdict "$name" $bad
}

export RONDO_RDMA_DEVICES=rxe0
small="--types float,int8 --ops sum,max --counts 0,3,1000,4099"
mixed="--threads 2 --iterations 2 --persistent 3"
step info "0" rondo info
says() { # name, RONDO_GPUDIRECT, what rondo info prints for the NIC
    wanted "$1" || return
    RONDO_GPUDIRECT=$2 ranks "0" rondo info
    grep -q "rxe0 port 1, memory node -1: $3" /tmp/out.0
    verdict "$1" $?
}
says info-auto auto "slots off"
says info-apart apart "slots apart; of what arrives, a read flushes them"
says info-dmabuf dmabuf "cannot be used: RONDO_GPUDIRECT=dmabuf: the driver of rxe0 registers no dma-bufs"
step barrier "0 1" matrix --ranks 0 --collectives barrier
step matrix-2 "0 1" matrix --ranks 0 $small
step matrix-3 "0 1 2" matrix --ranks 0 $small
step matrix-4 "0 0 1 1" matrix --ranks 0 $small
step mix-2 "0 1" mix --ranks 0 $mixed --seed 1
step mix-3 "0 1 1" mix --ranks 0 $mixed --seed 2
step p2p-2 "0 1" p2p --ranks 0
step large "0 1" matrix --ranks 0 --counts 70001 --types float --ops sum
export RONDO_RDMA_QUEUES=3
step matrix-queues "0 1" matrix --ranks 0 $small
step mix-queues "0 1" mix --ranks 0 $mixed --seed 4
unset RONDO_RDMA_QUEUES
unset RONDO_RDMA_DEVICES
step matrix-two-nics "0 1" matrix --ranks 0 $small
step mix-two-nics "0 1" mix --ranks 0 $mixed --seed 5
export RONDO_RDMA_DEVICES=rxe0
export RONDO_ALGORITHM=hierarchical
step matrix-hierarchical "0 0 1 1" matrix --ranks 0 --collectives allreduce,reduce_scatter_block,allgather,bcast,alltoall $small
unset RONDO_ALGORITHM
export RONDO_SLOT_BYTES=256
step mix-tiny-slots "0 1" mix --ranks 0 $mixed --seed 3 --spin 1
unset RONDO_SLOT_BYTES
step stress "0 0 1 1" rondo stress --device host --collectives 4 --iterations 5 --order random --sync
step bench "0 1" rondo bench allreduce -b 8 -e 64K -f 8 -n 5 -w 1 -c --device host
# Slots apart from their counters, which the device is shown once a read has flushed them, as with slots in a GPU's memory.
export RONDO_GPUDIRECT=apart
step apart-matrix-2 "0 1" matrix --ranks 0 $small
step apart-matrix-4 "0 0 1 1" matrix --ranks 0 $small
step apart-mix-3 "0 1 1" mix --ranks 0 $mixed --seed 6
step apart-p2p "0 1" p2p --ranks 0
step apart-large "0 1" matrix --ranks 0 --counts 70001 --types float --ops sum
export RONDO_SLOT_BYTES=256
step apart-tiny-slots "0 1" mix --ranks 0 $mixed --seed 7 --spin 1
unset RONDO_SLOT_BYTES
export RONDO_RDMA_QUEUES=3
step apart-queues "0 1" mix --ranks 0 $mixed --seed 8
unset RONDO_RDMA_QUEUES
unset RONDO_RDMA_DEVICES
step apart-two-nics "0 1" mix --ranks 0 $mixed --seed 9
export RONDO_RDMA_DEVICES=rxe0
step apart-stress "0 0 1 1" rondo stress --device host --collectives 4 --iterations 5 --order random --sync
step apart-bench "0 1" rondo bench allreduce -b 8 -e 64K -f 8 -n 5 -w 1 -c --device host
fault apart-killed "0 1 2" 'kill -9 $(echo $pids | cut -d" " -f2)' "0 2" --scenario blocking
fault apart-killed-in-large "0 1" 'kill -9 $(echo $pids | cut -d" " -f2)' "0" --scenario blocking --count 100000
unset RONDO_GPUDIRECT
# A forced choice that is impossible fails with the reason.
refused() { # name, RONDO_GPUDIRECT, what both ranks must print
    wanted "$1" || return
    RONDO_GPUDIRECT=$2 ranks "0 1" faults --scenario blocking
    bad=0
    for rank in 0 1; do
        grep -q "$3" /tmp/out.$rank || bad=1
    done
    verdict "$1" $bad
}
refused dmabuf-refused dmabuf "RONDO_GPUDIRECT=dmabuf: the driver of rxe0 registers no dma-bufs"
refused peermem-refused peermem "RONDO_GPUDIRECT=peermem: peermem is for the memory of GPUs"
refused nonsense-refused yes 'RONDO_GPUDIRECT="yes" is not allowed: it must be auto'
# If the limit of locked memory is too small, the error names the limit.
if wanted locked-memory; then
    chmod a+rw /dev/infiniband/*
    chmod a+rwx /tmp
    echo "root:x:0:0::/:/bin/sh
user:x:1000:1000::/tmp:/bin/sh" >/etc/passwd
    cat >/tmp/limited <<'END_LIMITED'
#!/bin/sh
ulimit -l 64
exec /test/faults --scenario blocking
END_LIMITED
    chmod +x /tmp/limited
    ranks "0 1" su user -c /tmp/limited
    grep -q "ulimit -l" /tmp/out.0 && grep -q "ulimit -l" /tmp/out.1
    verdict locked-memory $?
fi
# A device that does not exist.
if wanted no-such-device; then
    RONDO_RDMA_DEVICES=mlx5_7 ranks "0 1" faults --scenario blocking
    grep -q 'RONDO_RDMA_DEVICES="mlx5_7"' /tmp/out.0 && grep -q 'RONDO_RDMA_DEVICES="mlx5_7"' /tmp/out.1
    verdict no-such-device $?
fi
# A connection request without the job's token is refused and has no effect on the job.
if wanted unauthenticated; then
    start_ranks "0 1" faults --scenario serve --seconds 10
    wait_for_word /tmp/out.0 READY 60 && wait_for_word /tmp/out.1 READY 60
    bad=$?
    ports=$(real-rdma resource show cm_id | sed -n 's/.*state LISTEN.* src-addr [^ ]*:\([0-9]*\).*/\1/p' | sort -u)
    [ -n "$ports" ] || bad=1
    for port in $ports; do
        timeout 4 real-rping -c -a 10.1.0.1 -p "$port" -C 1 >>/tmp/out.unauthenticated 2>&1 && bad=1
        echo "port $port: status $?" >>/tmp/out.unauthenticated
    done
    end_ranks || bad=1
    grep -q '^RESULT 0 ' /tmp/out.0 && grep -q '^RESULT 0 ' /tmp/out.1 || bad=1
    verdict unauthenticated $bad
fi
# Of two NICs one goes down in the middle of collectives: what went by it goes by the other one, and no result is wrong.
rail() { # name, places, program, arguments...
    name=$1
    shift
    wanted "$name" || return
    real-ip link add veth2 type veth peer name veth3
    real-ip addr add 10.1.2.1/24 dev veth2
    real-ip link set veth2 up
    real-ip link set veth3 up
    real-rdma link add rxe2 type rxe netdev veth2
    sleep 1
    RONDO_RDMA_DEVICES=rxe0,rxe2 RONDO_LOG=debug start_ranks "$@"
    bad=0
    for rank in 0 1; do
        wait_for_word /tmp/out.$rank "rondo rank $rank DEBUG: rdma: queue pair 1 from .*ESTABLISHED" 60 || bad=1
    done
    sleep 2
    for pid in $pids; do
        kill -0 "$pid" || bad=1 # it has not ended yet
    done
    real-ip link set veth2 down
    end_ranks || bad=1
    for rank in 0 1; do
        grep -q "rdma: rxe2 port 1 went down" /tmp/out.$rank || bad=1
        grep -q "rdma: queue pair .* is there again, by rxe0" /tmp/out.$rank || bad=1
    done
    verdict "$name" $bad
    real-rdma link delete rxe2
    real-ip link delete veth2
}
rail rail-down "0 1" matrix --ranks 0 $small
export RONDO_GPUDIRECT=apart
rail apart-rail-down "0 1" matrix --ranks 0 $small
unset RONDO_GPUDIRECT
fault killed "0 1 2" 'kill -9 $(echo $pids | cut -d" " -f2)' "0 2" --scenario blocking
fault killed-in-large "0 1" 'kill -9 $(echo $pids | cut -d" " -f2)' "0" --scenario blocking --count 100000
export RONDO_TIMEOUT=3
fault frozen-with-timeout "0 1" 'kill -STOP $(echo $pids | cut -d" " -f2)' "0" --scenario blocking
unset RONDO_TIMEOUT
export RONDO_GPUDIRECT=apart
fault apart-link-down "0 1" 'real-ip link set veth0 down' "0 1" --scenario blocking --count 100000
unset RONDO_GPUDIRECT
real-rdma link delete rxe0 # SoftRoCE does not come back with its link
real-ip link set veth0 up
real-rdma link add rxe0 type rxe netdev veth0
sleep 1
fault link-down "0 1" 'real-ip link set veth0 down' "0 1" --scenario blocking --count 100000
real-ip link set veth0 up
real-ip addr add 10.1.0.1/24 dev veth0 2>/dev/null
echo END
sync
poweroff -f
