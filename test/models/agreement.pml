/* Agreement among members of which some die meanwhile (lib/communicator/agreement.c): contributions go up a tree of the members
 * that live, the root proposes, that all have stored the proposal is reported up the tree, and the decision goes down it.
 *
 * Four or five members, of which none, one or two die: 1, 2 and 4 are children of 0, 3 is a child of 2. In place of a parent that
 * has gone comes the nearest ancestor that lives, or the root, the lowest that lives. Each member comes to the agreement at any
 * time; until then what it is sent waits. Messages of one source keep their order, those of different sources have none. A
 * member may die between any two steps. Another one learns of that at any time later, each at its own; what it has not received
 * until then is lost, so a broadcast may reach some and not others. A member that dies may have returned before: its outcome
 * counts. A proposal is named by the root that has made it of contributions, so no two that differ count as the same.
 *
 * Holds: a root proposes only when all that live have contributed, and decides only when all that live have stored its
 * proposal; all that return, return the same; all that live return. No process repeats a step, so each execution ends.
 *
 * Each of these removes one part and must be caught: ONE_PHASE, ANY_ACCEPTS, ACCEPT_ALONE, REPORT_ALONE, NO_ADOPT, NO_REPORT,
 * NO_ACCEPT_AGAIN, NO_ANSWER, NO_LATE_DECISION, FORGET, NO_LOOK. UNCHECKED leaves it to the outcomes to show what a root that
 * decides too early does. */
#ifndef MEMBERS
#define MEMBERS 4
#endif
#ifndef DEATHS
#define DEATHS 2 /* at most */
#endif
#define NONE 255 /* no ballot, value or member */

mtype = { CONTRIBUTION, PROPOSAL, ACCEPTED, DECISION };
chan to[MEMBERS * MEMBERS] = [4] of { mtype, byte, byte, byte }; /* kind, ballot, value, covered */
#define channel(from, dest) to[(from) * MEMBERS + (dest)]

byte dead, come, returned; /* sets of members */
byte deaths; /* that are still to come */
byte outcome = NONE;
byte stored[MEMBERS] = NONE; /* the value that each has stored */

#define bit(i)       (1 << (i))
#define has(set, i)  (((set) >> (i)) & 1)
#define ALL          (bit(MEMBERS) - 1)
#define lowest_bit   (me & (~me + 1))
#define own_subtree  (((bit(lowest_bit) - 1) << me) & ALL)
#define subtree      (parent == me -> ALL : own_subtree)
#define covers(set)  (((set) | gone) & subtree) == subtree

inline send(dest, kind, ballot, value, set)
{
    if
    :: has(dead, dest) -> skip
    :: else -> assert(nfull(channel(me, dest))); channel(me, dest)!kind,ballot,value,set
    fi
}

/* To all that have reported. */
inline send_down(kind)
{
    other = 0;
    do
    :: other == MEMBERS -> break
    :: other < MEMBERS && has(reporters & ~gone, other) -> send(other, kind, ballot, stored[me], 0); other++
    :: other < MEMBERS && !has(reporters & ~gone, other) -> other++
    od;
    other = 0
}

/* Loses what has not been received. */
inline lose(source, dest)
{
    do
    :: nempty(channel(source, dest)) -> channel(source, dest)?_,_,_,_
    :: empty(channel(source, dest)) -> break
    od
}

/* Leaves this member's own rank in parent if it is the root. */
inline find_parent()
{
    parent = me;
    do
    :: parent != 0 && (parent == me || has(gone, parent)) -> parent = parent & (parent - 1)
    :: else -> break
    od;
    if
    :: parent != me && !has(gone, parent) -> skip
    :: else ->
        parent = 0;
        do
        :: parent != me && has(gone, parent) -> parent++
        :: else -> break
        od
    fi
}

/* What is stored is the decision, by what the source has told. */
inline decide(source)
{
    assert(outcome == NONE || outcome == stored[me]);
    outcome = stored[me];
    returned = returned | bit(me);
    told = source;
    send_down(DECISION)
}

/* Stores a proposal. */
inline accept(its_ballot, its_value)
{
    ballot = its_ballot;
    stored[me] = its_value;
    if
    :: accepted_ballot == NONE || accepted_ballot < ballot -> accepted_ballot = ballot; accepted = 0
    :: else -> skip
    fi;
    if
    :: accepted_ballot == ballot -> accepted = accepted | bit(me)
    :: else -> skip
    fi;
    send_down(PROPOSAL)
}

#ifdef NO_ADOPT
#define adopts false
#else
#define adopts (stored[me] != NONE)
#endif

#if defined(ONE_PHASE)
#define all_accepted true
#elif defined(ANY_ACCEPTS)
#define all_accepted ((accepted & ~bit(me)) != 0 || (gone | bit(me)) == ALL)
#else
#define all_accepted covers(accepted)
#endif

#ifdef ACCEPT_ALONE
#define may_accept (accepted & bit(me))
#define covered_accepted own_subtree
#else
#define may_accept covers(accepted)
#define covered_accepted accepted
#endif

#ifdef REPORT_ALONE
#define may_report true
#define covered_reported (gathered | own_subtree)
#else
#define may_report covers(gathered)
#define covered_reported gathered
#endif

#ifdef NO_REPORT
#define told_parent (told != NONE)
#else
#define told_parent (told == parent)
#endif

/* All that live and are not the root have stored what it has. */
inline check_stored()
{
    other = 0;
    do
    :: other == MEMBERS -> break
    :: other < MEMBERS -> assert(has(dead, other) || stored[other] == stored[me]); other++
    od;
    other = 0
}

inline coordinate()
{
    if
    :: accepted_ballot != me && covers(gathered) ->
        assert((come | dead) == ALL);
        if
        :: adopts -> value = stored[me]
        :: else -> value = me
        fi;
        accept(me, value);
        value = 0
    :: else -> skip
    fi;
    if
    :: accepted_ballot == me && all_accepted ->
#ifndef UNCHECKED
        check_stored();
#endif
        decide(me)
    :: else -> skip
    fi
}

inline report()
{
    if
    :: !told_parent && may_report ->
        send(parent, CONTRIBUTION, 0, 0, covered_reported);
        told = parent;
#ifndef NO_ACCEPT_AGAIN
        told_ballot = NONE
#endif
    :: else -> skip
    fi;
    if
    :: told == parent && told_ballot != accepted_ballot && may_accept ->
        send(parent, ACCEPTED, accepted_ballot, 0, covered_accepted);
        told_ballot = accepted_ballot
    :: else -> skip
    fi
}

inline look()
{
    find_parent();
    if
    :: !has(come, me) -> skip
    :: has(come, me) && !has(returned, me) && parent == me -> coordinate()
    :: has(come, me) && !has(returned, me) && parent != me -> report()
    :: has(come, me) && has(returned, me) ->
#ifndef FORGET
        if
        :: parent != me && parent != told -> send(parent, DECISION, ballot, stored[me], 0); told = parent
        :: else -> skip
        fi
#else
        skip
#endif
    fi;
    parent = 0
}

inline handle_contribution()
{
    if
    :: has(returned, me) ->
#ifndef NO_LATE_DECISION
        send(from, DECISION, ballot, stored[me], 0)
#else
        skip
#endif
    :: else ->
        gathered = gathered | set;
        reporters = reporters | bit(from);
#ifndef NO_ANSWER
        if
        :: stored[me] != NONE -> send(from, PROPOSAL, ballot, stored[me], 0)
        :: else -> skip
        fi
#endif
    fi
}

inline handle()
{
    if
    :: kind == CONTRIBUTION -> handle_contribution()
    :: kind == PROPOSAL && !has(returned, me) && (stored[me] == NONE || its_ballot > ballot) -> accept(its_ballot, value)
    :: kind == ACCEPTED ->
        if
        :: accepted_ballot == NONE || accepted_ballot < its_ballot -> accepted_ballot = its_ballot; accepted = set
        :: accepted_ballot == its_ballot -> accepted = accepted | set
        :: else -> skip
        fi
    :: kind == DECISION && !has(returned, me) -> ballot = its_ballot; stored[me] = value; decide(from)
    :: else -> skip
    fi;
    kind = 0;
    its_ballot = 0;
    value = 0;
    set = 0
}

#ifdef NO_LOOK
#define looks false
#else
#define looks true
#endif

#define receive(source) \
    source < MEMBERS && has(come, me) && nempty(channel(source % MEMBERS, me)) -> \
        channel(source % MEMBERS, me)?kind,its_ballot,value,set; from = source
#define learn(source) \
    source < MEMBERS && has(dead & ~gone, source) -> gone = gone | bit(source); lose(source % MEMBERS, me); noticed = true

proctype member(byte me)
{
    mtype kind;
    byte its_ballot, value, set, from, other, parent;
    byte gone, gathered = bit(me), accepted, reporters; /* sets of members */
    byte ballot = NONE, accepted_ballot = NONE, told = NONE, told_ballot = NONE;
    bool noticed;

end:
    do
    :: atomic {
           if
           :: !has(come, me) -> come = come | bit(me)
           :: receive(0)
           :: receive(1)
           :: receive(2)
           :: receive(3)
           :: receive(4)
           :: learn(0)
           :: learn(1)
           :: learn(2)
           :: learn(3)
           :: learn(4)
           fi;
           if
           :: kind != 0 -> handle()
           :: else -> skip
           fi;
           if
           :: looks || !noticed -> look()
           :: else -> skip
           fi;
           noticed = false;
           from = 0
       }
    :: atomic {
           deaths > 0 ->
           deaths--;
           dead = dead | bit(me);
           do
           :: other == MEMBERS -> break
           :: other < MEMBERS -> lose(other, me); other++
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
        do
        :: outcome == MEMBERS -> break
        :: outcome == NONE -> outcome = 0
        :: outcome < MEMBERS -> run member(outcome); outcome++
        od;
        outcome = NONE
    }
}
