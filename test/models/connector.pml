/* One connector: a producer, a consumer, a ring of slots, and the counters head and tail, which never wrap.
 *
 * Memory is weaker than on any machine: the producer's payload stores reach memory word by word in any order, and before or
 * after the tail store unless that is a release; the consumer may load payload before the load that announced the filled slot,
 * unless that is an acquire. Counter stores reach memory late, those of each counter in order. Preemption: after any failed
 * poll a side may save its position, lose every register, and come back at any later time.
 *
 * Message n carries n in each of its words, so order, loss, overwriting and staleness are all one assertion.
 *
 * Each of these must be caught: NO_RELEASE, NO_ACQUIRE, NO_CREDIT, ADVANCE_BEFORE_COPY, NO_SAVE. */
#define SLOTS 2
#define WORDS 2                          /* words of a slot; the code below spells out two */
#define MESSAGES 4
#define GARBAGE 255                      /* the contents of a register after another program ran */

byte payload[SLOTS * WORDS];
byte head, tail;

/* Stores that have not reached memory: the words of the ring, and how far its owner has advanced each counter. */
bool pending[SLOTS * WORDS];
byte pending_value[SLOTS * WORDS];
byte issued_head, issued_tail;

/* A released tail waits for the payload before it. The pending word in that slot cannot belong to a later message: the producer
 * has no credit for one before the consumer has seen this tail. */
#ifdef NO_RELEASE
#define released true
#else
#define released (!pending[(tail % SLOTS) * WORDS] && !pending[(tail % SLOTS) * WORDS + 1])
#endif

#define land(i) d_step { pending[i] -> payload[i] = pending_value[i]; pending_value[i] = 0; pending[i] = false }

proctype memory_system()
{
end_memory:
    do
    :: land(0)
    :: land(1)
    :: land(2)
    :: land(3)
    :: d_step { tail < issued_tail && released -> tail++ }
    :: d_step { head < issued_head -> head++ }
    od
}

/* Abandons the wait. Only the context survives: everything read in advance, the copy of the other side's counter included, is
 * lost, and the counter is read again before it is used. */
#ifdef NO_SAVE
#define save skip
#else
#define save context = position
#endif

#define write_word(i) d_step { !pending[i] -> pending_value[i] = position + 1; pending[i] = true }

proctype producer()
{
    byte context, position, seen_head;

    do
    :: position < MESSAGES ->
wait_for_credit:
           if
           :: position - seen_head < SLOTS -> skip
           :: else ->
                  seen_head = head;              /* poll */
#ifndef NO_CREDIT
                  if
                  :: position - seen_head < SLOTS -> skip
                  :: position - seen_head >= SLOTS -> goto wait_for_credit
                  :: position - seen_head >= SLOTS ->
                         d_step { save; position = GARBAGE; seen_head = GARBAGE };
                         d_step { position = context; seen_head = 0; context = 0 };
                         goto wait_for_credit
                  fi
#endif
           fi;
           write_word((position % SLOTS) * WORDS);
           write_word((position % SLOTS) * WORDS + 1);
           position++;
progress_sent:
           issued_tail = position
    :: else -> break
    od
}

proctype consumer()
{
    byte context, position, seen_tail, word, early;
    bool has_early;

    do
    :: position < MESSAGES ->
wait_for_data:
#ifdef NO_ACQUIRE
           /* The payload load may be performed before the poll that it depends on. */
           if
           :: early = payload[(position % SLOTS) * WORDS]; has_early = true
           :: skip
           fi;
#endif
           if
           :: seen_tail > position -> skip
           :: else ->
                  seen_tail = tail;              /* poll */
                  if
                  :: seen_tail > position -> skip
                  :: seen_tail <= position -> has_early = false; goto wait_for_data
                  :: seen_tail <= position ->
                         d_step { save; position = GARBAGE; seen_tail = GARBAGE; early = GARBAGE };
                         d_step { position = context; seen_tail = 0; early = 0; has_early = false; context = 0 };
                         goto wait_for_data
                  fi
           fi;
#ifdef ADVANCE_BEFORE_COPY
           issued_head = position + 1;
#endif
           word = (has_early -> early : payload[(position % SLOTS) * WORDS]);
           has_early = false;
           assert(word == position + 1);
           word = payload[(position % SLOTS) * WORDS + 1];
           assert(word == position + 1);
           word = 0;
           position++;
#ifndef ADVANCE_BEFORE_COPY
           issued_head = position;
#endif
progress_received:
           skip
    :: else -> break
    od
}

init
{
    atomic {
        run producer();
        run consumer();
        run memory_system()
    }
}
