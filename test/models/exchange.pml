/* Direct writes both ways: two ranks, each with a block that sends to the other and receives from it, part after part. Either may
 * decline, part by part; then both go through the slots. A word and a tail a direction, as in direct_write.pml, which has the
 * order of memory; here the question is whether the two ranks always agree.
 *
 * A rank says its word, takes the other's, and stores into the other's buffer or sends by a slot. What comes must come the way
 * that the receiver expects, and no word may be left for a later part.
 *
 * Each of these must be caught: STORES_ALL_THE_SAME (a rank that has declined stores where the other offers), TAKES_NOTHING (it
 * does not take the other's word), WAITS_FIRST (a rank takes the other's word before it says its own). */
#define PARTS 3
#define NONE 0
#define ADDRESS 1
#define IN_SLOTS 2

byte word[2];             /* of the receiver with the number */
byte tail[2];             /* parts that have come to it */
byte came_by[2 * PARTS];  /* the way of each */

#define other (1 - me)
#define take(there) atomic { word[other] != NONE -> there = word[other]; word[other] = NONE }

proctype rank(bit me)
{
    byte part, said, there, way;

    do
    :: part < PARTS ->
           if
           :: said = ADDRESS
           :: said = IN_SLOTS
           fi;
#ifdef WAITS_FIRST
           take(there);
#endif
           assert(word[me] == NONE);
           word[me] = said;
#ifdef TAKES_NOTHING
           if
           :: said == ADDRESS -> take(there)
           :: else -> there = IN_SLOTS
           fi;
#endif
#if !defined(WAITS_FIRST) && !defined(TAKES_NOTHING)
           take(there);
#endif
           if
#ifdef STORES_ALL_THE_SAME
           :: there == ADDRESS -> way = ADDRESS
#else
           :: there == ADDRESS && said == ADDRESS -> way = ADDRESS
#endif
           :: else -> way = IN_SLOTS
           fi;
           came_by[other * PARTS + part] = way;
           tail[other]++;
           tail[me] > part;
           assert(came_by[me * PARTS + part] == way);
           there = NONE;
           part++;
progress:
           skip
    :: else -> break
    od;
    assert(word[me] == NONE)
}

init
{
    atomic {
        run rank(0);
        run rank(1)
    }
}
