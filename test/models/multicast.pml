/* One multicast connector: a sender, two receivers that read the same slots, a tail, and a head for each receiver. Receivers
 * give slots back by the part (RONDO_GIVES_BACK here, a quarter of the ring in rondo_gives_back), not one by one.
 *
 * Memory is as weak as in connector.pml: a payload store reaches memory at any time, before or after the tail's unless that is a
 * release; a receiver may load payload before the load that announced the slot, unless that is an acquire. Counter stores reach
 * memory late, those of each counter in order. After any failed poll a side may save its position, lose every register, and
 * come back at any later time.
 *
 * Message n carries n, so order, loss, overwriting and staleness are all one assertion.
 *
 * Each of these must be caught: NO_RELEASE, NO_ACQUIRE, NO_CREDIT, ONE_OVERLOOKED, SHARED_HEAD, ADVANCE_BEFORE_COPY, NO_SAVE,
 * WITHHOLD. */
#define SLOTS 3
#define RECEIVERS 2
#define MESSAGES 5
#ifdef WITHHOLD
#define GIVEN 4                          /* more than the ring has */
#else
#define GIVEN 2
#endif
#define GARBAGE 255                      /* the contents of a register after another program ran */

byte payload[SLOTS];
byte tail, head[RECEIVERS];

/* Stores that have not reached memory. */
bool pending[SLOTS];
byte pending_value[SLOTS];
byte issued_tail, issued_head[RECEIVERS];

/* A released tail waits for the payload before it. */
#ifdef NO_RELEASE
#define released true
#else
#define released (!pending[tail % SLOTS])
#endif

#define reach(i) d_step { pending[i] -> payload[i] = pending_value[i]; pending_value[i] = 0; pending[i] = false }

#ifdef SHARED_HEAD
#define own_head 0
#else
#define own_head me
#endif

#ifdef NO_SAVE
#define save skip
#else
#define save context = position
#endif

proctype memory_system()
{
end_memory:
    do
    :: reach(0)
    :: reach(1)
    :: reach(2)
    :: d_step { tail < issued_tail && released -> tail++ }
    :: d_step { head[0] != issued_head[0] -> head[0] = issued_head[0] }
    :: d_step { head[1] != issued_head[1] -> head[1] = issued_head[1] }
    od
}

proctype sender()
{
    byte context, position, seen, other;

    do
    :: position < MESSAGES ->
wait_for_credit:
           if
           :: position - seen < SLOTS -> skip
           :: else ->
                  seen = head[0];                /* poll: one receiver after the other, the least counts */
#if !defined(ONE_OVERLOOKED) && !defined(SHARED_HEAD)
                  other = head[1];
                  seen = (other < seen -> other : seen);
                  other = 0;
#endif
#ifndef NO_CREDIT
                  if
                  :: position - seen < SLOTS -> skip
                  :: position - seen >= SLOTS -> goto wait_for_credit
                  :: position - seen >= SLOTS ->
                         d_step { save; position = GARBAGE; seen = GARBAGE };
                         d_step { position = context; seen = 0; context = 0 };
                         goto wait_for_credit
                  fi
#endif
           fi;
           d_step { !pending[position % SLOTS] -> pending_value[position % SLOTS] = position + 1; pending[position % SLOTS] = true };
           position++;
progress_sent:
           issued_tail = position
    :: else -> break
    od
}

proctype receiver(byte me)
{
    byte context, position, seen, word, early;
    bool has_early;

    do
    :: position < MESSAGES ->
wait_for_data:
#ifdef NO_ACQUIRE
           /* The payload load may be performed before the poll that it depends on. */
           if
           :: early = payload[position % SLOTS]; has_early = true
           :: skip
           fi;
#endif
           if
           :: seen > position -> skip
           :: else ->
                  seen = tail;                   /* poll */
                  if
                  :: seen > position -> skip
                  :: seen <= position -> has_early = false; goto wait_for_data
                  :: seen <= position ->
                         d_step { save; position = GARBAGE; seen = GARBAGE; early = GARBAGE };
                         d_step { position = context; seen = 0; early = 0; has_early = false; context = 0 };
                         goto wait_for_data
                  fi
           fi;
#ifdef ADVANCE_BEFORE_COPY
           issued_head[own_head] = position + 1;
#endif
           word = (has_early -> early : payload[position % SLOTS]);
           has_early = false;
           assert(word == position + 1);
           word = 0;
           position++;
#ifndef ADVANCE_BEFORE_COPY
           if
           :: position % GIVEN == 0 -> issued_head[own_head] = position
           :: else -> skip
           fi;
#endif
progress_received:
           skip
    :: else -> break
    od
}

init
{
    atomic {
        run sender();
        run receiver(0);
        run receiver(1);
        run memory_system()
    }
}
