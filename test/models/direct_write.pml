/* Direct writes on one connector: a receiver that offers its buffers, one part after the other, and may give up while it waits;
 * a sender that stores there; the word between them, and the tail that announces a stored part.
 *
 * Memory is weaker than on any machine: the receiver's earlier reads of a buffer may be performed late unless the word is a
 * release; the sender's stores reach memory late, and after the tail unless that is a release. The word itself is exchanged
 * atomically; the tail reaches memory late, in order.
 *
 * A buffer is offered while its part waits, and the sender must not store into it before or after: that is one assertion, made
 * when a store reaches memory.
 *
 * Each of these must be caught: NO_RELEASE, NO_OFFER_RELEASE, LATE_RESET, NO_EXCHANGE, NO_WAIT. */
#define PARTS 3
#define NONE 0

byte word;                  /* NONE, or 1 + the part whose buffer is offered */
byte tail, issued_tail;
bool lent[PARTS];
bool read_before[PARTS];    /* the earlier use of the buffer has ended */
bool pending[PARTS];        /* the part's store has been made, */
bool stored[PARTS];         /* and has reached memory */
bool failed;                /* the operation has failed, on both sides */

#ifdef NO_RELEASE
#define released true
#else
#define released (!pending[tail])
#endif

#define reach(i) d_step { pending[i] -> assert(lent[i] && read_before[i]); pending[i] = false; stored[i] = true }
#define end_use(i) d_step { !read_before[i] -> read_before[i] = true }

proctype memory_system()
{
end_memory:
    do
    :: reach(0)
    :: reach(1)
    :: reach(2)
    :: end_use(0)
    :: end_use(1)
    :: end_use(2)
    :: d_step { tail < issued_tail && released -> tail++ }
    od
}

proctype sender()
{
    byte part, there;

    do
    :: part < PARTS ->
           if
           :: word != NONE -> skip
           :: failed && word == NONE -> break
           fi;
#if defined(NO_EXCHANGE) || defined(LATE_RESET)
           there = word;
#ifndef LATE_RESET
           word = NONE;
#endif
#else
           atomic { there = word; word = NONE };
#endif
           if
           :: there == NONE -> skip              /* the receiver has withdrawn the offer */
           :: else ->
                  assert(there == part + 1);
                  pending[part] = true;
                  part++;
                  there = NONE;
                  issued_tail = part;
#ifdef LATE_RESET
                  word = NONE;
#endif
progress_sent:
                  skip
           fi
    :: else -> break
    od
}

proctype receiver()
{
    byte part;

    do
    :: part < PARTS ->
           lent[part] = true;
#ifndef NO_OFFER_RELEASE
           read_before[part];                    /* the release waits for earlier reads */
#endif
           word = part + 1;
           if
           :: tail > part -> skip
           :: failed = true ->                   /* the receiver gives up */
#ifdef NO_WAIT
                  atomic { word = NONE; lent[part] = false };
                  break
#else
                  if
                  :: atomic { word == part + 1 -> word = NONE }
                  :: word == NONE -> tail > part /* the sender is storing now */
                  fi;
                  lent[part] = false;
                  break
#endif
           fi;
           assert(stored[part]);
           lent[part] = false;
           part++;
progress_received:
           skip
    :: else -> break
    od
}

init
{
    atomic {
        run sender();
        run receiver();
        run memory_system()
    }
}
