/* Two lanes, two ranks, opposite orders: the deadlock that the daemon prevents, with the synchronization that makes it worse.
 *
 * Rank 0 starts A, synchronizes its device, starts B, synchronizes, waits for both. Rank 1 starts B, synchronizes, waits for B,
 * and only then starts A. A device synchronization returns when it sees that the daemon is out. Every operation is a list
 * (send, receive) x STEPS on both ranks, through a connector of one slot for each lane and direction; slots stay filled
 * whatever the daemons do. The race between a submit and a daemon that leaves is part of quit.pml, so both are atomic here, and
 * alive stands for the two words of quit.pml: the daemon of the last launch has not left.
 *
 * The property: all processes end, provided that each process that can always take a step takes one at some time (weak
 * fairness). A received slice is progress, and there are finitely many, so a fair cycle without progress is an execution that
 * never finishes.
 *
 * Each of these must be caught: NO_PREEMPT, NO_QUIT, NO_RESTART, NO_PAUSE, NO_PERSISTENCE, SHARED_SLOT. */
#define RANKS 2
#define LANES 2
#define STEPS 2
#define SLOTS 1
#define A 0
#define B 1
#define FRONT_BUDGET 2                   /* failed polls before a visit ends: the front of the table waits longer */
#define BACK_BUDGET 1

#define at(rank, lane) ((rank) * LANES + (lane))
#define peer (1 - rank)

byte sent[RANKS * LANES];                /* slices that this rank has committed to its peer */
byte received[RANKS * LANES];            /* slices that this rank has taken from its peer */
byte table[RANKS * LANES];               /* task table: lanes in order of start */
byte tasks[RANKS];                       /* number of entries of the table */
bool alive[RANKS];
bool synchronizing[RANKS];

#define finished(lane)     (received[at(rank, lane)] == STEPS)
#define started_finished   ((tasks[rank] < 1 || finished(table[at(rank, 0)])) && \
                            (tasks[rank] < 2 || finished(table[at(rank, 1)])))
#define in_flight(r, lane) (sent[at(r, lane)] - received[at(1 - (r), lane)])

/* Room in the connector to the peer. */
#ifdef SHARED_SLOT
#define room (in_flight(rank, A) + in_flight(rank, B) < SLOTS)
#else
#define room (in_flight(rank, lane) < SLOTS)
#endif

#define sends_next (sent[at(rank, lane)] <= received[at(rank, lane)])
#define can_send   (sends_next && room)
#define can_receive (!sends_next && in_flight(peer, lane) > 0)

proctype daemon(byte rank)
{
    byte place, lane, budget;
    bool moved;

end_parked:
    alive[rank];

round:
    place = 0;
    moved = false;
    do
    :: place < tasks[rank] ->
           atomic {
               lane = table[at(rank, place)];
               budget = (place == 0 -> FRONT_BUDGET : BACK_BUDGET)
           };
           do
           :: finished(lane) -> break
           :: atomic { !finished(lane) && can_send -> sent[at(rank, lane)]++; moved = true }
           :: atomic { !finished(lane) && can_receive -> received[at(rank, lane)]++; moved = true };
progress_received:
              skip
           :: atomic {
                  !finished(lane) && !can_send && !can_receive ->
#ifdef NO_PREEMPT
                  skip
#else
                  if
                  :: budget > 0 -> budget--
                  :: else ->
#ifdef NO_PERSISTENCE
                         sent[at(rank, lane)] = received[at(peer, lane)];
#endif
                         break
                  fi
#endif
              }
           od;
           place++
    :: else -> break
    od;
    atomic {
        if
        :: started_finished -> alive[rank] = false           /* idle */
#ifndef NO_QUIT
        :: !started_finished && !moved -> alive[rank] = false /* stuck */
        :: !started_finished && moved  -> goto round
#else
        :: !started_finished -> goto round
#endif
        fi;
        place = 0; lane = 0; budget = 0; moved = false
    };
    goto end_parked
}

/* Restarts a daemon that left with work behind. The pause is longer than a pending synchronization needs to notice that the
 * daemon is out; without it the synchronization may look only at the wrong moments. */
#ifdef NO_PAUSE
#define paused_enough true
#else
#define paused_enough (!synchronizing[rank])
#endif

proctype poller(byte rank)
{
    do
#ifndef NO_RESTART
    :: atomic {
           !alive[rank] && !started_finished && paused_enough -> alive[rank] = true
       }
#endif
    :: finished(A) && finished(B) -> break
    od
}

#define start(lane)      atomic { table[at(rank, tasks[rank])] = lane; tasks[rank]++; alive[rank] = true }
#define synchronize()    synchronizing[rank] = true; \
                         atomic { !alive[rank] -> synchronizing[rank] = false }

proctype application(byte rank)
{
    if
    :: rank == 0 ->
           start(A);
           synchronize();
           start(B);
           synchronize();
           finished(A) && finished(B)
    :: rank == 1 ->
           start(B);
           synchronize();
           finished(B);
           start(A);
           synchronize();
           finished(A)
    fi
}

init
{
    atomic {
        run application(0);
        run application(1);
        run daemon(0);
        run daemon(1);
        run poller(0);
        run poller(1)
    }
}
