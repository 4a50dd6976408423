/* One connection between two ranks that breaks at any time and is made again (lib/control/link_renew.c). Both put FRAMES frames,
 * and say now and then how many they have taken. What a rank reads comes into a buffer first, and is taken from there.
 *
 * A break loses, for each direction, nothing or all that is under way; what is sent afterwards is lost. Each rank notices it at any
 * later time, if at all: the maker makes another connection then, and the other rank leaves its own for it as soon as it comes,
 * whether it has noticed or not. Frame n carries n, so that order, loss and repetition are one assertion.
 *
 * Each of these must be caught: COUNT_READ, KEEP_NONE, PUT_ALL, KEEP_BUFFER, PUT_BEFORE. */
#ifndef FRAMES
#define FRAMES 2
#endif
#define MADE 3 /* connections, of which all but the last break */

mtype = { FRAME, BEAT, RENEW };
chan to_other[MADE] = [8] of { mtype, byte };
chan to_maker[MADE] = [8] of { mtype, byte };
bool broken[MADE];
byte made = 1; /* connections, from the start on one */
byte maker_done, other_done;

#define lose(channel) do :: channel?_,_ :: empty(channel) -> break od

/* Ends connections, one after the other. */
active proctype network()
{
    byte i = 0;
    do
    :: i < MADE - 1 && i < made ->
        atomic {
            broken[i] = true;
            if
            :: lose(to_other[i])
            :: skip
            fi;
            if
            :: lose(to_maker[i])
            :: skip
            fi
        };
        i++
    :: i == MADE - 1 -> break
    od
}

#define send(channel, type, value) \
    if \
    :: broken[at] -> skip \
    :: else -> channel[at]!type(value) \
    fi

#ifdef KEEP_NONE
#define again_from put
#else
#ifdef PUT_ALL
#define again_from acknowledged
#else
#define again_from said
#endif
#endif

#define put_again(channel) \
    i = again_from; \
    do \
    :: i < put -> send(channel, FRAME, i); i++ \
    :: else -> break \
    od; \
    i = 0

#ifdef COUNT_READ
#define count_read if :: kind == FRAME -> counted++ :: else fi
#define count_taken skip
#else
#define count_read skip
#define count_taken counted++
#endif

/* What both do with what is in the buffer. */
#define take_frame assert(value == taken); taken++; count_taken
#define take_count assert(value >= acknowledged && value <= put)

active proctype maker()
{
    byte at = 0, put = 0, acknowledged = 0, taken = 0, counted = 0, told = 0, value = 0, said = 0, i = 0;
    mtype kind;
    bool held = false, cut = false, renewing = false;
end:
    do
#ifdef PUT_BEFORE
    :: atomic { put < FRAMES && !cut -> send(to_other, FRAME, put); put++ }
#else
    :: atomic { put < FRAMES && !cut && !renewing -> send(to_other, FRAME, put); put++ }
#endif
    :: atomic { !cut && !renewing && told < counted -> told = counted; send(to_other, BEAT, counted) }
    :: atomic { !cut && !held && nempty(to_maker[at]) -> to_maker[at]?kind,value; held = true; count_read }
    :: atomic { held -> held = false;
        if
        :: kind == FRAME -> assert(!renewing); take_frame; maker_done = taken
        :: kind == BEAT -> take_count; acknowledged = value
        :: kind == RENEW -> assert(renewing); take_count; said = value;
            put_again(to_other); acknowledged = value; renewing = false
        fi }
    :: atomic { broken[at] && !cut -> cut = true; held = false } /* noticed */
    :: atomic { cut -> at = made; made++; cut = false; renewing = true; told = counted; send(to_other, RENEW, counted) }
    od
}

active proctype other()
{
    byte at = 0, put = 0, acknowledged = 0, taken = 0, counted = 0, told = 0, value = 0, said = 0, i = 0;
    mtype kind;
    bool held = false, cut = false, renewing = false;
end:
    do
    :: atomic { put < FRAMES && !cut && !renewing -> send(to_maker, FRAME, put); put++ }
    :: atomic { !cut && !renewing && told < counted -> told = counted; send(to_maker, BEAT, counted) }
    :: atomic { !cut && !held && nempty(to_other[at]) -> to_other[at]?kind,value; held = true; count_read }
    :: atomic { held -> held = false;
        if
        :: kind == FRAME -> assert(!renewing); take_frame; other_done = taken
        :: kind == BEAT -> take_count; acknowledged = value
        :: kind == RENEW -> assert(renewing); take_count; said = value; told = counted;
            send(to_maker, RENEW, counted); put_again(to_maker); acknowledged = value; renewing = false
        fi }
    :: atomic { broken[at] && !cut -> cut = true; held = false } /* noticed */
    :: atomic { at + 1 < made -> at++; cut = false; renewing = true; /* the next one comes */
#ifndef KEEP_BUFFER
        held = false
#endif
        }
    od
}

active proctype all_arrive()
{
    maker_done == FRAMES && other_done == FRAMES
}
