/* A queue pair that breaks while slots and credits are under way, and is made again (transport/rdma/renew.c). One connector. The
 * sender's NIC reads a slot when it takes its post, later than the post; what has left a NIC arrives, in order, unless the
 * other side has freed its queue pair of that generation. A side breaks at any time, and what the other side learns of it is
 * late: by a post that fails, by a request for the next generation, or because it is asked.
 *
 * Slots of one word; message n carries n. Credits are the receiver's head.
 *
 * Each of these must be caught: KEEP_OLD, KEEP_OLD_SENDER, NO_TOLD, NO_RESTART, NO_CREDIT, NO_ASK. */
#define SLOTS 2
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef BREAKS
#define BREAKS 2
#endif
#define GENERATIONS (BREAKS + 2)
#define TAIL        SLOTS

byte filled[SLOTS], arrived[SLOTS];
byte tail, head;                 /* the sender's: what its device has filled; the credit that has come */
byte shown, position;            /* the receiver's: the tail that has come; what its device has received */
byte transmitted, told;          /* the sender's proxy */
byte credited;                   /* the receiver's */
byte breaks, request, asked, sender_generation, receiver_generation;
bool receiver_up;
mtype = {DOWN, WAITING, UP};
mtype sender_state = DOWN;

chan posts = [2] of {byte, byte};                 /* what: a slot, or TAIL and its value */
chan wire[GENERATIONS] = [2] of {byte, byte};
chan credits[GENERATIONS] = [1] of {byte};

#define is_connected (receiver_up && receiver_generation == sender_generation)

active proctype sending_device()
{
    do
    :: tail < MESSAGES ->
           tail - head < SLOTS;
           filled[tail % SLOTS] = tail + 1;
           tail++
    :: else -> break
    od
}

inline break_sender()
{
    sender_state = DOWN;
    do
    :: posts?_, _
    :: empty(posts) -> break
    od;
    if
    :: transmitted > told -> told = transmitted
    :: else
    fi;
#ifndef NO_RESTART
    transmitted = head;
#endif
#ifndef KEEP_OLD_SENDER
    do
    :: credits[sender_generation]?_
    :: empty(credits[sender_generation]) -> break
    od;
#endif
    skip
}

active proctype sending_proxy()
{
end_proxy:
    do
    :: d_step {
           sender_state == UP && transmitted < tail && empty(posts) ->
           posts!transmitted % SLOTS, 0;
           transmitted++;
           if
#ifndef NO_TOLD
           :: transmitted < told
#endif
           :: else -> posts!TAIL, transmitted
           fi
       }
    :: d_step { sender_state == UP && breaks < BREAKS -> breaks++; break_sender() }
    :: d_step { sender_state == UP && !is_connected && (nempty(posts) || nempty(wire[sender_generation])) -> break_sender() }
    :: d_step { sender_state != DOWN && asked == sender_generation -> break_sender() }
    :: d_step {
           sender_state == DOWN ->
           sender_generation++;
           request = sender_generation;
           sender_state = WAITING
       }
    :: d_step { sender_state == WAITING && is_connected -> sender_state = UP }
    :: d_step { sender_state == WAITING && receiver_generation == sender_generation && !receiver_up -> break_sender() }
    od
}

active proctype sending_nic()
{
    byte what, value;

end_nic:
    do
    :: d_step {
           sender_state == UP && nempty(posts) && nfull(wire[sender_generation]) ->
           posts?what, value;
           if
           :: what != TAIL -> value = filled[what]
           :: else
           fi;
           wire[sender_generation]!what, value;
           what = 0;
           value = 0
       }
    od
}

#ifdef KEEP_OLD
#define arrives_at_receiver(g) (receiver_up && receiver_generation >= g)
#else
#define arrives_at_receiver(g) (receiver_up && receiver_generation == g)
#endif
#ifdef KEEP_OLD_SENDER
#define arrives_at_sender(g) (sender_state == UP && sender_generation >= g)
#else
#define arrives_at_sender(g) (sender_state == UP && sender_generation == g)
#endif

#define slot_arrives(g) d_step { \
    arrives_at_receiver(g) && nempty(wire[g]) -> \
    wire[g]?what, value; \
    if \
    :: what != TAIL -> arrived[what] = value \
    :: else -> assert(value >= shown); shown = value \
    fi; \
    what = 0; value = 0 }
#define credit_arrives(g) d_step { \
    arrives_at_sender(g) && nempty(credits[g]) -> credits[g]?value; assert(value >= head); head = value; value = 0 }

active proctype network()
{
    byte what, value;

end_network:
    do
    :: slot_arrives(1)
    :: slot_arrives(2)
    :: slot_arrives(3)
    :: credit_arrives(1)
    :: credit_arrives(2)
    :: credit_arrives(3)
    od
}

active proctype receiving_proxy()
{
end_proxy:
    do
    :: d_step {
           request > receiver_generation ->
#ifndef KEEP_OLD
           do
           :: wire[receiver_generation]?_, _
           :: empty(wire[receiver_generation]) -> break
           od;
#endif
           receiver_generation = request;
           receiver_up = true;
#ifndef NO_CREDIT
           credited = 0
#endif
       }
    :: d_step {
           receiver_up && credited != position && nfull(credits[receiver_generation]) ->
           credits[receiver_generation]!position;
           credited = position
       }
    :: d_step {
           receiver_up && breaks < BREAKS ->
           breaks++;
           receiver_up = false;
#ifndef NO_ASK
           asked = receiver_generation
#endif
       }
    od
}

/* The slot is looked at twice, because it must not change while it is read. */
active proctype receiving_device()
{
    do
    :: position < MESSAGES ->
           shown > position;
           assert(arrived[position % SLOTS] == position + 1);
           assert(arrived[position % SLOTS] == position + 1);
           position++
    :: else -> break
    od
}
