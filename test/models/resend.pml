/* A connector over a network whose connection breaks and is made again (transport/ucx/ucx.h): a sender, a receiver, and what is
 * between them. Slot n carries n. Its data are in the user's buffer, which the user changes as soon as they are settled; of the
 * slots in COPIED the sender makes a copy when it has sent them for the first time, and sends that again.
 *
 * A break ends one direction or both: what is under way there is lost or arrives, and what is sent afterwards is lost, without an
 * error. Of the sides whose direction has ended at least one notices it, at any later time; the other one may hear of it by the
 * generation alone. A side that makes its connection again may end the other's direction as well.
 *
 * Each of these must be caught: TAKE_TWICE, SETTLE_SENT, SETTLE_SENDING, AGAIN_FROM_SOURCE, NO_AGAIN, NO_GENERATION,
 * NO_LOOK, AWAIT_ANSWER. */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef COPIED
#define COPIED 2 /* bit n: slot n */
#endif
#define is_copied(n) ((COPIED >> (n)) & 1)
#define SLOTS  2
#define BREAKS 2
#define NONE   15
#define ENOUGH 8 /* questions, and generations: so that a search ends where they do not help */

mtype = { SLOT, QUERY, CREDIT };
chan forward = [6] of { mtype, byte, byte };             /* SLOT: number; QUERY: its number, generation */
chan back = [6] of { mtype, byte, byte, byte, byte };    /* CREDIT: head, arrived, generation, the query that it answers */
bool forward_ended, back_ended, sender_notices, receiver_notices;
byte sender_generation, receiver_generation;
byte sender_done, receiver_done;

#define lose_forward do :: forward?_,_,_ :: empty(forward) -> break od
#define lose_back do :: back?_,_,_,_,_ :: empty(back) -> break od
#define perhaps(what) if :: what :: skip fi

active proctype network()
{
    byte breaks = 0;
    do
    :: breaks < BREAKS ->
        atomic {
            if
            :: forward_ended = true; sender_notices = true
            :: back_ended = true; receiver_notices = true
            :: forward_ended = true; back_ended = true; sender_notices = true
            :: forward_ended = true; back_ended = true; receiver_notices = true
            fi;
            if :: forward_ended -> perhaps(lose_forward) :: else fi;
            if :: back_ended -> perhaps(lose_back) :: else fi;
            breaks++
        }
    :: breaks < BREAKS -> break
    :: breaks == BREAKS -> break
    od
}

#define send_forward(a, b, c) if :: forward_ended -> skip :: else -> forward!a(b, c) fi
#define send_back(a, b, c, d) if :: back_ended -> skip :: else -> back!CREDIT(a, b, c, d) fi

active proctype sender()
{
    byte filled = 0, transmitted = 0, confirmed = 0, credited = 0, settled = 0, again = NONE, reading = NONE;
    byte query = 0, words = 0, head, arrived, generation, answered;
    bool changed[MESSAGES];
    bool cut = false, holds = false, asks = false, first = false;
end:
    do
    :: atomic { filled < MESSAGES && filled - credited < SLOTS -> filled++ } /* the device */
    :: atomic { !cut && !holds && again == NONE && reading == NONE && transmitted < filled ->
        reading = transmitted; first = true; transmitted++ }
    :: atomic { !cut && !holds && again != NONE && reading == NONE ->
        if
        :: again < confirmed -> again = confirmed
        :: else
        fi;
        if
        :: again < transmitted -> reading = again; again++
        :: else -> again = NONE
        fi }
    :: atomic { reading != NONE -> /* UCX has read the data, and sent them, or failed to */
#ifndef AGAIN_FROM_SOURCE
        assert((is_copied(reading) && !first) || !changed[reading]);
#else
        assert(!changed[reading]);
#endif
        if
        :: cut -> skip
        :: else -> send_forward(SLOT, reading, 0)
        fi;
        reading = NONE; first = false }
#ifdef SETTLE_SENT
    :: atomic { settled < transmitted && reading == NONE -> changed[settled] = true; settled++ }
#else
#ifdef SETTLE_SENDING
    :: atomic { settled < transmitted && (settled < confirmed || is_copied(settled)) -> changed[settled] = true; settled++ }
#else
    :: atomic { settled < transmitted && (settled < confirmed || is_copied(settled)) && reading == NONE ->
        changed[settled] = true; settled++; sender_done = settled }
#endif
#endif
    :: atomic { asks && !cut && reading == NONE -> asks = false; words++; query = words;
        send_forward(QUERY, query, sender_generation) }
    :: atomic { back?CREDIT(head, arrived, generation, answered) ->
        assert(head <= arrived && arrived <= transmitted);
        if
        :: head > credited -> credited = head
        :: else
        fi;
        if
        :: arrived > confirmed -> confirmed = arrived
        :: else
        fi;
        if
#ifndef NO_GENERATION
        :: generation > sender_generation -> sender_generation = generation; cut = true
#endif
        :: generation < sender_generation && query == 0 && !cut -> asks = true
        :: else
        fi;
        if
        :: !cut && query != 0 && answered == query -> query = 0;
            if
            :: holds -> holds = false;
#ifndef NO_AGAIN
                if
                :: confirmed < transmitted -> again = confirmed
                :: else
                fi
#endif
            :: else
            fi
        :: else
        fi;
        head = 0; arrived = 0; generation = 0; answered = 0 }
#ifndef NO_LOOK
    :: atomic { timeout && !cut && query == 0 && !asks && credited < transmitted && words < ENOUGH -> asks = true } /* nothing is heard of it */
#endif
#ifndef AWAIT_ANSWER
    :: atomic { timeout && !cut && query != 0 && sender_generation < ENOUGH -> cut = true; sender_generation++ } /* no answer comes */
#endif
    :: atomic { sender_notices && !cut -> sender_notices = false; cut = true; sender_generation++ }
    :: atomic { cut && reading == NONE -> cut = false; sender_notices = false; forward_ended = false; again = NONE;
        holds = credited < transmitted; asks = holds;
        query = 0;
        if
        :: receiver_generation < sender_generation -> perhaps(back_ended = true; lose_back)
        :: else
        fi }
    od
}

active proctype receiver()
{
    byte arrived = 0, head = 0, told_arrived = 0, told_head = 0, query = 0, number, generation;
    bool ready[MESSAGES];
    bool cut = false, owes = false;
end:
    do
    :: atomic { head < arrived -> head++ } /* the device */
    :: atomic { forward?SLOT(number, generation) ->
        if
#ifndef TAKE_TWICE
        :: number < arrived || ready[number] -> owes = true
#endif
        :: else ->
            assert(!ready[number]);
            assert(number - head < SLOTS);
            ready[number] = true;
            do
            :: arrived < MESSAGES && ready[arrived] -> arrived++
            :: else -> break
            od;
            receiver_done = arrived
        fi;
        number = 0 }
    :: atomic { forward??QUERY(number, generation) -> /* which may overtake slots */
        query = number;
        if
#ifndef NO_GENERATION
        :: generation > receiver_generation -> receiver_generation = generation; cut = true
#endif
        :: else
        fi;
        number = 0; generation = 0 }
    :: atomic { !cut && (owes || query != 0 || told_arrived < arrived || told_head < head) ->
        send_back(head, arrived, receiver_generation, query);
        told_arrived = arrived; told_head = head; query = 0; owes = false }
    :: atomic { receiver_notices && !cut -> receiver_notices = false; cut = true; receiver_generation++ }
    :: atomic { cut -> cut = false; receiver_notices = false; back_ended = false;
        owes = true;
        if
        :: sender_generation < receiver_generation -> perhaps(forward_ended = true; lose_forward)
        :: else
        fi }
    od
}

active proctype all_arrive()
{
    sender_done == MESSAGES && receiver_done == MESSAGES
}
