/* Block 0 of the host device alone, and gathering the other block when there is something for it (device/host/host.c).
 *
 * What quit.pml shows is taken for granted here: how submitters and a daemon that leaves find each other, and that a consensus
 * is one (here it is one step). This is about which blocks are part of it. The words of the matter are sequentially consistent
 * in the code, so steps are of one access each and take effect at once.
 *
 * Of the operations every other one concerns block 1, too. A daemon that has stayed too long leaves with work behind, in either
 * way of leaving; so the next one has to find it.
 *
 * Holds: every operation is executed by the blocks that it concerns; block 1 works only while there is a daemon, and is not
 * left inside when there is none; every execution ends.
 *
 * Each of these must be caught: CALL_FIRST, LOOK_FIRST, ALIVE_LAST, ANY_LAUNCH, ALONE_ANYWAY, NO_RESUME.
 */
#define OPS 5
#define is_wide(operation) ((operation) % 2 == 1)
#define OVERSTAYS 2
#define LAUNCHES 12                      /* more than it takes */

byte submitted, fetched, completed;
byte told, known, finished;              /* wide operations: announced to block 1, noticed by it, its part of them done */
byte launches, fresh;
bool alive;
byte gathered;                           /* a launch; 0: none */
byte wake;                               /* of block 1's thread */
byte overstays;
bool inside, voted;                      /* block 1 */
byte epoch;                              /* daemons that have ended by consensus */

#define in_flight (submitted - completed)

#ifdef ANY_LAUNCH
#define is_gathered (gathered != 0)
#else
#define is_gathered (gathered == launches)
#endif

#ifdef NO_RESUME
#define needs_others is_gathered
#else
#define needs_others (gathered >= fresh)
#endif

inline claim_daemon(resumes)
{
    launches++;
    if
    :: resumes -> skip
    :: else    -> fresh = launches
    fi;
    alive = true
}

proctype submitter()
{
    do
    :: submitted < OPS ->
           atomic {
               submitted++;
               if
               :: alive  -> skip
               :: !alive -> claim_daemon(in_flight > 1)
               fi
           }
    :: else -> break
    od
}

/* Waiters, and the poller: what a daemon has left gets another one. */
proctype restarter()
{
end_idle:
    do
    :: atomic { !alive && in_flight > 0 && launches < LAUNCHES -> claim_daemon(true) }
    od
}

inline call()
{
    wake++
}

inline gather()
{
    if
    :: is_gathered -> skip
    :: !is_gathered ->
#ifdef CALL_FIRST
           call();
           gathered = launches
#else
           gathered = launches;
           call()
#endif
    fi
}

#ifdef ALONE_ANYWAY
#define may_leave_alone true
#else
#define may_leave_alone (!needs_others)
#endif

/* Whoever runs it: the claim of block 0 makes them one after the other. */
proctype block0()
{
    bool must;

end_parked:
    alive;
look:
    if
    :: needs_others -> gather()
    :: else         -> skip
    fi;
    if
    :: submitted > fetched ->
           if
           :: is_wide(fetched) -> told++; gather()
           :: else -> completed++
           fi;
           fetched++;
           goto look
    :: known == told && submitted == fetched -> skip
    :: atomic { overstays < OVERSTAYS -> overstays++ }; must = true
    fi;
    if
    :: may_leave_alone ->
           atomic {                      /* quit.pml has this in its steps */
               if
               :: submitted == fetched || must -> alive = false
               :: else -> skip
               fi
           };
           must = false;
           if
           :: alive  -> goto look
           :: !alive -> goto end_parked
           fi
    :: !may_leave_alone -> skip
    fi;
    /* its vote stands; as soon as the other's does, the last look */
    if
    :: atomic { voted && (submitted == fetched || must) && known == told ->
           alive = false; epoch++; voted = false };
       must = false;
       goto end_parked
    :: submitted > fetched && !must -> goto look
    fi
}

proctype block1()
{
    byte seen, since;
    bool wanted;                         /* there is a daemon, and it is gathered */

awake:
#if defined(LOOK_FIRST)
    wanted = alive;
    wanted = wanted && is_gathered;
    seen = wake;
#elif defined(ALIVE_LAST)
    seen = wake;
    wanted = is_gathered;
    wanted = wanted && alive;
#else
    seen = wake;
    wanted = alive;
    wanted = wanted && is_gathered;
#endif
    if
    :: wanted -> wanted = false
    :: else ->
end_asleep:
           wake != seen;
           goto awake
    fi;
    atomic { inside = true; since = epoch };
    do
    :: atomic { since == epoch && told > known -> known++; voted = false }
    :: atomic { since == epoch && known > finished -> assert(alive); finished++; completed++; voted = false }
    :: atomic { since == epoch && !voted && told == known && known == finished -> voted = true }
    :: atomic { since == epoch && !voted && told == known && known > finished && overstays < OVERSTAYS ->
           overstays++; voted = true }   /* its part is stuck */
    :: atomic { since != epoch -> inside = false; break }
    od;
    goto awake
}

proctype everything_executed()
{
    completed == OPS && finished == OPS / 2 && !inside && !alive
}

init
{
    atomic {
        run submitter();
        run restarter();
        run block0();
        run block1();
        run everything_executed()
    }
}
