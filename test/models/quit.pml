/* The sleep/wake race between submitters and the daemon of a device with two blocks.
 *
 * A daemon leaves an idle device by consensus of its blocks, and a submitter that finds no daemon starts one. Every word has
 * one writer, because a GPU's atomic operations are not atomic in the host's memory: the host writes launches (under its queue
 * lock), the daemon writes state. state names the launch that it belongs to; if that is an older one, a daemon is being
 * started. Each side writes one word and then reads the other's (tail then state; state = LEAVING then tail), so each needs a
 * full fence between the two. A submitter that finds LEAVING waits for the daemon's decision. Memory is TSO-like: a store waits
 * in its process's buffer and reaches memory at any later time, in order; a load reads memory. A fence, an unlock and a
 * read-modify-write with release drain the buffer first. A claim does not wait for the blocks of the previous daemon: some may
 * enter while others still have to learn that they are out. That is the host device; a GPU, which runs its launches one after
 * the other, allows less.
 *
 * Every loop below waits on a guard instead of spinning, so the state graph has no cycle (run.py checks that too): every
 * execution ends, and what holds in all end states holds eventually.
 *
 * Each of these removes one part of the protocol and must be caught: NO_SUBMIT_FENCE, NO_QUIT_FENCE, NO_FINAL_LOOK,
 * NO_WITHDRAW, LATE_WITHDRAW, NO_NOTICE, NO_LOCK, NO_LEAVING_WAIT, LEAVING_IS_LEFT, NO_LAUNCH, NO_EPOCH, OVERSTAY. NO_NOTICE
 * with POLLER and OVERSTAY with POLLER must hold: a poller that restarts the daemon while submitted > completed makes up for
 * the missing part. */
#define BLOCKS 2
#define SUBMITTERS 2
#define OPS 3                            /* the first submitter submits two, the second one submits one */
#define PROCESSES (SUBMITTERS + BLOCKS)

/* Words in memory that are written by plain stores, through the buffers. */
#define TAIL     0                       /* operations submitted; a buffered store adds one */
#define LAUNCHES 1                       /* daemons started */
#define STATE    2                       /* a launch, and what its daemon does */
#define FETCHED  3                       /* operations that block 0 has taken from the queue */
#define ANNOUNCED 4                       /* operations that block 0 has announced to block 1 */
#define READ     5                       /* announced operations that block 1 has noticed */
#define VERDICT  6                       /* stands for the store that ends an epoch of the consensus word */
#define WORDS    6
byte memory[WORDS];

#define LEFT    0
#define RUNS    1
#define LEAVING 2
#define state_of(launch, what) ((launch) * 4 + (what))
#define is_left    (memory[STATE] == state_of(memory[LAUNCHES], LEFT))
#define is_leaving (memory[STATE] == state_of(memory[LAUNCHES], LEAVING))
#ifdef NO_LAUNCH
#define looks_left (memory[STATE] % 4 == LEFT)
#else
#define looks_left is_left
#endif

bool locked;                             /* the queue lock */
chan buffer[PROCESSES] = [3] of { byte, byte };

/* The consensus word: one atomic word. Every access but the verdict's store is a read-modify-write. */
byte epoch, votes;
bool deciding;                           /* all blocks have voted, and the last voter takes its final look */
bool quits;                              /* the end of the previous epoch: quit, or go on */

/* Not part of the protocol: used by the properties. The number of its claim identifies a daemon. */
byte claims;                             /* how often the device was claimed for a daemon */
byte yielded;                            /* the last daemon that has given up the device */
#ifdef OVERSTAY
byte overstays;                          /* how often a daemon has left because of its residency, with work behind */
#define OVERSTAYS 2
#endif
byte executed[BLOCKS * OPS];             /* how often a block has run an operation */
byte executions;

#define store(word, value) buffer[me]!word,value
#define drained            empty(buffer[me])

/* At most one daemon has the device: a claim finds that the previous one has yielded, and a block that works has not
 * yielded. */
#define claim assert(claims == yielded); claims++
#define has_device (yielded < daemon)

proctype store_buffer(byte me)
{
    byte word, value;
end_drain:
    do
    :: d_step {
           buffer[me]?word,value;
           if
           :: word == TAIL    -> memory[TAIL]++
           :: word == VERDICT -> epoch++; votes = 0; deciding = false; quits = value
           :: else            -> memory[word] = value
           fi;
           word = 0; value = 0
       }
    od
}

proctype submitter(byte me; byte count)
{
    do
    :: count > 0 ->
#ifndef NO_LOCK
           atomic { !locked -> locked = true };
#endif
           store(TAIL, 1);
           count--;
#ifndef NO_SUBMIT_FENCE
           drained;
#endif
look:
           if
           :: looks_left -> skip
#if defined(NO_LEAVING_WAIT)
           :: !looks_left -> goto submitted
#elif defined(LEAVING_IS_LEFT)
           :: is_leaving -> skip
           :: !looks_left && !is_leaving -> goto submitted
#else
           :: is_leaving -> !is_leaving; goto look
           :: !looks_left && !is_leaving -> goto submitted
#endif
           fi;
           atomic { claim; store(LAUNCHES, claims) };
submitted:
           atomic { drained; locked = false }
    :: else -> break
    od
}

/* The work of block 0 is in the queue, that of the other blocks in the announcements. `seen` counts the operations that a block
 * has dealt with; it stands for the contexts and task tables in device memory. */
#define work ((index == 0 -> memory[TAIL] : memory[ANNOUNCED]) > seen)

/* Block 0 may be idle only when its announcements have been noticed: a vote from before an announcement would otherwise count
 * as the vote of a block that knows it. */
#ifdef NO_NOTICE
#define noticed true
#else
#define noticed (index != 0 || memory[READ] == seen)
#endif

/* How a block that has voted learns the decision. */
#ifdef NO_EPOCH
#define decided is_left
#define out true
#else
#define decided (epoch != voted_in)
#define out quits
#endif

proctype block(byte me; byte index)
{
    byte seen, voted_in;
    byte daemon;                         /* not part of the protocol */
    bool last;
#ifdef OVERSTAY
    bool must_leave;                     /* regardless of remaining work */
#endif
#if defined(NO_WITHDRAW) || defined(LATE_WITHDRAW)
    bool counted;                        /* the vote of this block stands while it works */
#endif

end_parked:
    atomic { !is_left && !is_leaving -> daemon = claims; voted_in = epoch };

look:
    if
    :: work             -> goto take
    :: !work && noticed -> skip
#ifdef OVERSTAY
    :: atomic { overstays < OVERSTAYS -> overstays++ }; must_leave = true
#endif
    fi;

    atomic {                             /* vote */
        drained;
        votes++;
        last = (votes == BLOCKS)
    };
    if
    :: !last -> goto voted
    :: last  -> last = false
    fi;
    atomic {                             /* decide for all blocks, unless one has withdrawn meanwhile */
        drained;
        if
        :: epoch == voted_in && votes == BLOCKS && !deciding -> deciding = true; goto decide
        :: else -> skip
        fi
    };

voted:
    if
    :: decided -> goto learn
    :: work    -> skip
    fi;
#if defined(NO_WITHDRAW) || defined(LATE_WITHDRAW)
    counted = true;
    goto take;
#endif
withdraw:
    atomic {
        drained;
        if
        :: epoch == voted_in && !deciding -> votes--; goto look
        :: else -> skip
        fi
    };
    decided;
learn:
    atomic {
        if
        :: out  -> goto leave
        :: !out -> voted_in = epoch; goto look
        fi
    };

take:
    if
    :: index == 0 -> store(ANNOUNCED, seen + 1); store(FETCHED, seen + 1)
    :: index != 0 -> store(READ, seen + 1)
    fi;
    atomic {                             /* execute */
        assert(has_device);
        assert(executed[index * OPS + seen] == 0);
        executed[index * OPS + seen]++;
        executions++;
        seen++
    };
#ifdef NO_WITHDRAW
    if
    :: counted  -> counted = false; goto voted
    :: !counted -> skip
    fi;
#endif
#ifdef LATE_WITHDRAW
    if
    :: counted  -> counted = false; goto withdraw
    :: !counted -> skip
    fi;
#endif
    goto look;

decide:
    store(STATE, state_of(memory[LAUNCHES], LEAVING));
#ifndef NO_QUIT_FENCE
    drained;
#endif
#ifdef NO_FINAL_LOOK
    goto quit;
#endif
    if
    :: memory[TAIL] == memory[FETCHED] -> goto quit
    :: memory[TAIL] != memory[FETCHED] -> skip
#ifdef OVERSTAY
    :: must_leave -> goto quit
#endif
    fi;
    store(STATE, state_of(memory[LAUNCHES], RUNS));
    store(VERDICT, false);
    goto conclude;
quit:
    atomic { store(STATE, state_of(memory[LAUNCHES], LEFT)); yielded = daemon };
    store(VERDICT, true);
conclude:
    epoch != voted_in;
    goto learn;

leave:
    atomic {
        drained;
#ifdef OVERSTAY
        must_leave = false;
#endif
        voted_in = 0; daemon = 0
    };
    goto end_parked
}

/* An end state in which this process still waits is a lost wake-up: all blocks are out or stuck, and an operation is left. */
proctype everything_executed()
{
#ifdef POLLER
    do
    :: atomic { !locked && is_left && executions < BLOCKS * memory[TAIL] -> claim; memory[LAUNCHES] = claims }
    :: executions == BLOCKS * OPS -> break
    od
#else
    executions == BLOCKS * OPS
#endif
}

init
{
    atomic {
        run submitter(0, 2);
        run submitter(1, 1);
        run block(2, 0);
        run block(3, 1);
        run store_buffer(0);
        run store_buffer(1);
        run store_buffer(2);
        run store_buffer(3);
        run everything_executed()
    }
}
