/* Agreement among members of which some die meanwhile (lib/communicator/agreement.h): each member reports to the coordinator,
 * the lowest that has not gone; the coordinator proposes, and decides when all that have not gone have stored its proposal.
 *
 * Three members, of which none, one or two die. Each contributes 0 or 1, and comes to the agreement at any time; until then it only
 * keeps reports, as its control thread does. Between two members messages keep their order; what a dying member has sent last
 * may be lost, to each other member apart, so a broadcast may reach some and not others; then comes the notice of its death,
 * and nothing after it. A member that dies may have returned before: its outcome counts.
 *
 * Holds: all that return, return the same; all that live return. No process repeats a step, so each execution ends.
 *
 * Each of these removes one part and must be caught: ONE_PHASE, ANY_ACCEPTS, NO_ADOPT, FORGET, NO_LOOK, NO_REPORT. */
#define MEMBERS 3
#define DEATHS  2 /* at most */
#define NONE    2 /* no value */

mtype = { CONTRIBUTION, STORED, PROPOSAL, ACCEPTED, DECISION, DIED };
chan to[MEMBERS * MEMBERS] = [8] of { mtype, byte };
#define channel(from, dest) to[(from) * MEMBERS + (dest)]

byte doomed, dead, returned; /* sets of members */
byte deaths; /* that are still to come */
byte outcome = NONE;

#define bit(i)       (1 << (i))
#define has(set, i)  (((set) >> (i)) & 1)
#define ALL          ((1 << MEMBERS) - 1)

/* Sends, unless the destination has gone. Of a doomed member, from some message on nothing arrives. */
inline send(dest, kind, value)
{
    if
    :: has(gone, dest) -> skip
    :: !has(gone, dest) && !has(lost, dest) -> channel(me, dest)!kind,value
    :: !has(gone, dest) && has(doomed, me) -> lost = lost | bit(dest)
    fi
}

inline send_all(kind, value)
{
    other = 0;
    do
    :: other == MEMBERS -> break
    :: other < MEMBERS && other == me -> other++
    :: other < MEMBERS && other != me -> send(other, kind, value); other++
    od;
    other = 0
}

inline decide(value)
{
    if
    :: has(returned, me) -> skip
    :: else ->
        returned = returned | bit(me);
        assert(outcome == NONE || outcome == value);
        outcome = value
    fi
}

inline choose()
{
    if
    :: stored != NONE -> skip
#ifndef NO_ADOPT
    :: stored == NONE && adopted != NONE -> stored = adopted
    :: stored == NONE && adopted == NONE -> stored = combined
#else
    :: stored == NONE -> stored = combined
#endif
    fi
}

#if defined(ONE_PHASE)
#define all_accepted true
#elif defined(ANY_ACCEPTS)
#define all_accepted (accepted != 0 || (gone | bit(me)) == ALL)
#else
#define all_accepted ((accepted | gone | bit(me)) == ALL)
#endif

#ifdef FORGET
#define reports !has(returned, me)
#else
#define reports true
#endif

#ifdef NO_REPORT
#define told_another (told != NONE + 1)
#else
#define told_another (told == coordinator)
#endif

inline look()
{
    coordinator = 0;
    do
    :: coordinator < me && has(gone, coordinator) -> coordinator++
    :: else -> break
    od;
    if
    :: !here -> skip
    :: here && coordinator == me ->
        if
        :: !proposes && (reported | gone | bit(me)) == ALL ->
            choose();
            proposes = true;
            send_all(PROPOSAL, stored)
        :: else -> skip
        fi;
        if
        :: proposes && !told_all && all_accepted ->
            told_all = true;
            decide(stored);
            send_all(DECISION, stored)
        :: else -> skip
        fi
    :: here && coordinator != me && !told_another && reports ->
        told = coordinator;
        if
        :: stored != NONE -> send(coordinator, STORED, stored)
        :: else -> send(coordinator, CONTRIBUTION, own)
        fi
    :: here && coordinator != me && (told_another || !(reports)) -> skip
    fi;
    coordinator = 0
}

/* What a message changes, before look(). */
inline take()
{
    if
    :: kind == DIED ->
        gone = gone | bit(from);
#ifdef NO_LOOK
        looks = !proposes
#endif
    :: kind == CONTRIBUTION -> reported = reported | bit(from); combined = combined & value
    :: kind == STORED -> reported = reported | bit(from); adopted = value
    :: kind == PROPOSAL ->
        if
        :: stored == NONE -> stored = value
        :: else -> skip
        fi;
        send(from, ACCEPTED, NONE);
#ifdef ONE_PHASE
        decide(stored)
#endif
    :: kind == ACCEPTED -> accepted = accepted | bit(from)
    :: kind == DECISION -> stored = value; decide(value)
    :: kind == 0 -> skip
    fi
}

proctype member(byte me)
{
    mtype kind;
    byte value, own, combined, adopted = NONE, stored = NONE;
    byte gone, lost, reported, accepted; /* sets of members */
    byte coordinator, other, from, told = NONE + 1;
    bool here, proposes, told_all, looks = true;

    if
    :: own = 0
    :: own = 1
    fi;
    combined = own;
end:
    do
    :: atomic {
           if
           :: !here -> here = true
           :: me != 0 && nempty(channel(0, me)) -> from = 0; channel(0, me)?kind,value
           :: me != 1 && nempty(channel(1, me)) -> from = 1; channel(1, me)?kind,value
           :: me != 2 && nempty(channel(2, me)) -> from = 2; channel(2, me)?kind,value
           fi;
           take();
           if
           :: looks -> look()
           :: else -> skip
           fi;
           looks = true;
           kind = 0;
           value = 0;
           from = 0
       }
    :: atomic { deaths > 0 && !has(doomed, me) -> deaths--; doomed = doomed | bit(me) }
    :: atomic {
           has(doomed, me) ->
           dead = dead | bit(me);
           other = 0;
           do
           :: other == MEMBERS -> break
           :: other < MEMBERS && other == me -> other++
           :: other < MEMBERS && other != me -> channel(me, other)!DIED,NONE; other++
           od;
           break
       }
    od
}

/* In the end all that live have returned. */
active proctype monitor()
{
    (dead | returned) == ALL
}

init
{
    atomic {
        select(deaths : 0 .. DEATHS);
        run member(0);
        run member(1);
        run member(2)
    }
}
