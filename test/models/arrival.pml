/* Arrivals over a network in slots that lie apart from their counters (proxy/arrival.h). The sender's NIC writes slots into one
 * memory, the GPU's, where they arrive late and word by word, and the tail into another, the host's, where it arrives at once.
 * The proxy reads the tail, has the slots flushed, and shows the device the tail that it had read. The flush is a read of that
 * memory by that NIC: it ends when everything that the NIC had written before the flush has arrived. It says nothing about
 * later writes.
 *
 * The device's own polling and the effects of preemption are part of connector.pml; here the device takes slots as soon as it
 * is shown a tail. Credits go the other way through memory of one kind, so head is one word.
 *
 * Message n carries n in each of its words.
 *
 * Each of these must be caught: NO_FLUSH, SHOW_FIRST, SHOW_LATEST, FLUSH_EARLY. */
#define SLOTS 2
#define WORDS 2
#define MESSAGES 4

byte payload[SLOTS * WORDS];
bool pending[SLOTS * WORDS];
byte pending_value[SLOTS * WORDS];

byte landed, shown, head;

#define land(i) d_step { pending[i] -> payload[i] = pending_value[i]; pending_value[i] = 0; pending[i] = false }

proctype gpu_memory()
{
end_memory:
    do
    :: land(0)
    :: land(1)
    :: land(2)
    :: land(3)
    od
}

#define write_word(i) d_step { pending[i] = true; pending_value[i] = position + 1 }

/* One queue pair: first the slot, then the tail. Without credit the consumer may still read the slot. */
proctype sender()
{
    byte position;

    do
    :: position < MESSAGES && position - head < SLOTS ->
           write_word((position % SLOTS) * WORDS);
           write_word((position % SLOTS) * WORDS + 1);
           position++;
progress_sent:
           landed = position
    :: position == MESSAGES -> break
    od
}

/* Records what is pending when the flush begins. A word that is rewritten meanwhile had arrived before, because there was
 * credit. */
#define begin_flush d_step { \
    mark[0] = pending[0]; mark[1] = pending[1]; mark[2] = pending[2]; mark[3] = pending[3]; }
#define flushed ((!mark[0] || !pending[0]) && (!mark[1] || !pending[1]) && \
                 (!mark[2] || !pending[2]) && (!mark[3] || !pending[3]))

proctype proxy()
{
    byte tail;
    bool mark[SLOTS * WORDS];

    do
    :: shown < MESSAGES ->
           landed > shown;                   /* polls again */
#ifdef FLUSH_EARLY
           begin_flush;
           tail = landed;
#else
           tail = landed;
#ifndef NO_FLUSH
           begin_flush;
#endif
#endif
#ifdef SHOW_FIRST
           shown = tail;
#endif
#ifndef NO_FLUSH
           flushed;
           d_step { mark[0] = false; mark[1] = false; mark[2] = false; mark[3] = false };
#endif
#ifdef SHOW_LATEST
           tail = landed;
#endif
progress_shown:
           shown = tail
    :: else -> break
    od
}

proctype device()
{
    byte position;

    do
    :: position < MESSAGES ->
           shown > position;
           assert(payload[(position % SLOTS) * WORDS] == position + 1);
           assert(payload[(position % SLOTS) * WORDS + 1] == position + 1);
           position++;
progress_received:
           head = position
    :: else -> break
    od
}

init
{
    atomic {
        run sender();
        run proxy();
        run device();
        run gpu_memory()
    }
}
