/* Block 0 of the host device alone, and waking the other block when there is work for it (device/host/host.c).
 *
 * The results of quit.pml are assumed here: submitters and a daemon that leaves find each other, and a consensus is sound (here
 * it is one step). This model is about the blocks that take part. The words involved are sequentially consistent in the code,
 * so each step is one access and takes effect at once.
 *
 * Every other operation concerns block 1 as well. A daemon that has stayed too long leaves with work behind, in either way of
 * leaving, so the next daemon must find that work.
 *
 * Holds: every operation is executed by the blocks that it concerns; block 1 works only while there is a daemon, and is not
 * left inside when there is none; every execution ends.
 *
 * Each of these must be caught: CALL_FIRST, LOOK_FIRST, ALIVE_LAST, ANY_LAUNCH, ALONE_ANYWAY, NO_RESUME. */
#define OPS 5
#define is_wide(operation) ((operation) % 2 == 1)
#define OVERSTAYS 2
#define LAUNCHES 12                      /* more than are needed */

byte submitted, fetched, completed;
byte told, known, finished;              /* operations of both blocks: announced to block 1, noticed by it, executed by it */
byte launches, fresh;
bool alive;
byte gathered;                           /* the launch whose daemon includes block 1; 0: none */
byte wake;                               /* the word that block 1's thread sleeps on */
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

/* Waiters, and the poller: they start another daemon for the work that one has left behind. */
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

/* Block 0, on any thread: its claim lets one thread run it after the other. */
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
    /* block 0's vote stands; once the other block votes, block 0 takes the final look */
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
    bool wanted;                         /* there is a daemon, and it includes block 1 */

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
           overstays++; voted = true }   /* the part of block 1 is stuck */
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
