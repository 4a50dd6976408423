/* The flight recorder's ring of one place: a writer records two operations, and the end of each; a reader copies the place without
 * a lock (lib/diagnostics/flight_recorder.[ch]). A record is three words, of which the end writes two.
 *
 * Memory is weaker than on any machine: of one write, stores reach memory in any order, and of one copy, loads are performed in
 * any order, but for what a release or an acquire forbids. Stores to the stamp are in order, and so are loads of it.
 *
 * A copy that the reader accepts must be a state of the record: all words of one operation, before its end or after it.
 *
 * Each of these must be caught: NO_OPEN, NO_WORD_RELEASE, NO_RELEASE, NO_ACQUIRE, NO_SECOND_LOOK, NO_WORD_ACQUIRE, SAME_STAMP. */
#define OPERATIONS 2

byte stamp; /* 0: a write is under way */
byte call, completed, outcome;

/* One write: opens the record, stores the words, closes it. first: the call is stored, too. */
inline put(what, value, first, mark)
{
    d_step { opened = false; closed = false; stored_call = !first; stored_completed = false; stored_outcome = false }
#ifdef NO_OPEN
    opened = true;
#endif
    do
    :: atomic { !opened -> stamp = 0; opened = true }
#ifdef NO_WORD_RELEASE
#define MAY_STORE true
#else
#define MAY_STORE opened
#endif
    :: atomic { MAY_STORE && !stored_call -> call = what; stored_call = true }
    :: atomic { MAY_STORE && !stored_completed -> completed = value; stored_completed = true }
    :: atomic { MAY_STORE && !stored_outcome -> outcome = value; stored_outcome = true }
#ifdef NO_RELEASE
#define MAY_CLOSE opened
#else
#define MAY_CLOSE (opened && stored_call && stored_completed && stored_outcome)
#endif
    :: atomic { MAY_CLOSE && !closed -> stamp = mark; closed = true }
    :: opened && closed && stored_call && stored_completed && stored_outcome -> break
    od
}

#ifdef SAME_STAMP
#define ENDED(n) (2 * (n))
#else
#define ENDED(n) (2 * (n) + 1)
#endif

active proctype writer()
{
    bool opened, closed, stored_call, stored_completed, stored_outcome;
    byte n = 1;
    do
    :: n <= OPERATIONS ->
           put(n, 2 * n, true, 2 * n);
           put(n, 2 * n + 1, false, ENDED(n));
           n++
    :: else -> break
    od
}

active proctype reader()
{
    byte before, after, my_call, my_completed, my_outcome;
    bool looked, looked_again, loaded_call, loaded_completed, loaded_outcome;
    do
    :: atomic { !looked -> before = stamp; looked = true }
#ifdef NO_ACQUIRE
#define MAY_LOAD true
#else
#define MAY_LOAD looked
#endif
    :: atomic { MAY_LOAD && !loaded_call -> my_call = call; loaded_call = true }
    :: atomic { MAY_LOAD && !loaded_completed -> my_completed = completed; loaded_completed = true }
    :: atomic { MAY_LOAD && !loaded_outcome -> my_outcome = outcome; loaded_outcome = true }
#ifdef NO_WORD_ACQUIRE
#define MAY_LOOK looked
#else
#define MAY_LOOK (looked && loaded_call && loaded_completed && loaded_outcome)
#endif
    :: atomic { MAY_LOOK && !looked_again -> after = stamp; looked_again = true }
    :: looked && looked_again && loaded_call && loaded_completed && loaded_outcome -> break
    od;
#ifdef NO_SECOND_LOOK
    after = before;
#endif
    if
    :: before != 0 && before == after ->
           assert(my_call == before / 2 && my_completed == my_outcome);
           assert(my_completed / 2 == my_call)
    :: else
    fi
}
