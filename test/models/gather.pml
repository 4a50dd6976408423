/* Block 0 of the host device alone, and waking the other block when there is work for it (device/host/host.c).
 *
 * Of quit.pml's results one is assumed here: a submitter and a daemon that leaves see each other's write (the words involved are
 * sequentially consistent here, each access a step), and a submitter waits for the outcome of a look at the queue. What each of
 * them does otherwise is in its steps, because the blocks go on meanwhile: block 0 may fetch an operation after its vote, and a
 * daemon may do all that between a submission and its submitter's look at the daemon. This model is about the blocks that take
 * part.
 *
 * Every other operation concerns block 1 as well. A daemon that has stayed too long leaves with work behind, in either way of
 * leaving, so the next daemon must find that work.
 *
 * Holds: every operation is executed by the blocks that it concerns; block 1 works only while there is a daemon, and is not
 * left inside when there is none; every execution ends.
 *
 * Each of these must be caught: CALL_FIRST, LOOK_FIRST, ALIVE_LAST, ANY_LAUNCH, ALONE_ANYWAY, NO_RESUME, SUBMITTER_SAYS. */
#define OPS 4
#define is_wide(operation) ((operation) % 2 == 1)
#define OVERSTAYS 2
#define LAUNCHES 12                      /* more than are needed */

byte submitted, fetched, completed;
byte told, known, finished;              /* operations of both blocks: announced to block 1, noticed by it, executed by it */
byte launches;
bool alive, locked;                      /* locked: the queue lock */
byte gathered;                           /* the launch whose daemon includes block 1; 0: none */
byte wake;                               /* the word that block 1's thread sleeps on */
byte overstays;
bool inside;                             /* block 1 */
bool stands[2], deciding;                /* the blocks' votes; all are in, and block 1 takes the final look */
byte epoch;                              /* daemons that have ended by consensus */

#define in_flight (submitted - completed)

#ifdef ANY_LAUNCH
#define is_gathered (gathered != 0)
#else
#define is_gathered (gathered == launches)
#endif

#ifdef SUBMITTER_SAYS
byte fresh;                              /* the last launch before which, says its submitter, nothing was left */
#define needs_others (gathered >= fresh)
#else
#ifdef NO_RESUME
#define needs_others is_gathered
#else
#define needs_others (is_gathered || told != finished)
#endif
#endif

inline claim_daemon(resumes)
{
    launches++;
#ifdef SUBMITTER_SAYS
    if
    :: resumes -> skip
    :: else    -> fresh = launches
    fi;
#endif
    alive = true
}

proctype submitter()
{
    do
    :: submitted < OPS ->
           atomic { !locked -> locked = true };
           submitted++;
           atomic {
               !deciding ->
               if
               :: alive  -> skip
               :: !alive -> claim_daemon(in_flight > 1)
               fi;
               locked = false
           }
    :: else -> break
    od
}

/* Waiters, and the poller: they start another daemon for the work that one has left behind. */
proctype restarter()
{
end_idle:
    do
    :: atomic { !alive && !locked && in_flight > 0 && launches < LAUNCHES -> claim_daemon(true) }
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
    bool must, voted;
    byte since;

end_parked:
    alive;
    since = epoch;
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
           if
           :: !voted -> skip
           :: atomic { voted && !deciding -> stands[0] = false; voted = false };
               if
               :: epoch != since -> goto end_parked
               :: else -> skip
               fi
           fi;
           goto look
    :: known == told && submitted == fetched -> skip
    :: atomic { overstays < OVERSTAYS -> overstays++ }; must = true
    fi;
    if
    :: !voted -> atomic { stands[0] = true; voted = true }
    :: else -> skip
    fi;
    if
    :: may_leave_alone ->
           atomic { !deciding -> stands[0] = false; voted = false };
           if
           :: epoch != since -> must = false; goto end_parked
           :: else -> skip
           fi;
           atomic {                      /* quit.pml has this in its steps */
               if
               :: submitted == fetched || must -> alive = false
               :: else -> skip
               fi;
               must = false;
               if
               :: alive -> goto look
               :: else  -> goto end_parked
               fi
           }
    :: !may_leave_alone -> skip
    fi;
    if
    :: atomic { epoch != since -> voted = false; must = false; goto end_parked }
    :: atomic { stands[0] && stands[1] && !deciding && (must || (submitted == fetched && known == told)) ->
           alive = false; epoch++; stands[0] = false; stands[1] = false; voted = false; must = false; goto end_parked }
    :: atomic { epoch == since && !stands[0] -> voted = false; goto look } /* the verdict was to go on */
    :: submitted > fetched && !must -> goto look
    fi
}

proctype block1()
{
    byte seen, since;
    bool wanted;                         /* there is a daemon, and it includes block 1 */
    bool out;

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
    :: atomic { since == epoch && !deciding && told > known -> known++; stands[1] = false }
    :: atomic { since == epoch && !deciding && known > finished -> assert(alive); finished++; completed++; stands[1] = false }
    :: atomic { since == epoch && !stands[1] && told == known && known == finished -> stands[1] = true }
    :: atomic { since == epoch && !stands[1] && told == known && known > finished && overstays < OVERSTAYS ->
           overstays++; stands[1] = true }   /* the part of block 1 is stuck */
    :: atomic { since == epoch && stands[0] && stands[1] && told == known && !deciding -> deciding = true };
       atomic { out = (submitted == fetched); alive = alive && !out };
       atomic { epoch = epoch + out; stands[0] = false; stands[1] = false; deciding = false }
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
