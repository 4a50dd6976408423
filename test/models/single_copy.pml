/* Single copies on one connector: a sender whose slots reference its buffers, a receiver that copies them, and the word between
 * them. The sender's operation may fail at any time; then it withdraws what it has referenced, and its application writes to the
 * buffers without waiting for the receiver. The receiver may find that it cannot read, and refuses; the sender fills the slot.
 * Between two parts the sender waits for something else than the slot (`other`), which its peer gives only when it has the part:
 * so a sender must fill refused slots at every wait. The sender's process may also die, and another one get its number.
 *
 * Memory is weaker than on any machine: the receiver's look at the word may be performed before its copy unless there is a fence;
 * the application's stores may reach memory before the withdrawal, and the bytes of a filled slot after the word that tells of
 * them, unless there is one. The head is published after the copy.
 *
 * A receiver that takes a part must have got the right bytes: that is one assertion. The other: a sender whose operation has
 * succeeded is never read after its end.
 *
 * Each of these must be caught: NO_WITHDRAW, NO_WITHDRAW_FENCE, NO_LOOK, NO_LOOK_FENCE, HEAD_FIRST, NO_FILL_RELEASE, FILL_LATE,
 * NO_TOKEN. */
#define PARTS 2

mtype = { NONE, REFERENCED, REFUSED, WITHDRAWN };

mtype word[PARTS] = NONE;       /* as memory has it */
bool arrived[PARTS];            /* the tail: the slot is there */
bool head[PARTS];               /* the receiver has taken it */
bool right[PARTS] = true;       /* the buffer has the part's bytes */
bool in_slot[PARTS];            /* the slot has them */
bool filling[PARTS];            /* the slot's stores are made, and have not reached memory */
bool withdrawing[PARTS];        /* so of the withdrawal */
bool failed;                    /* the sender's operation */
bool ended;                     /* the sender's application has the buffers again after a success */
bool other;                     /* the something else is there */
bool dead, reused;              /* the sender's process has died; another has its number */

#define reach_slot(i) d_step { filling[i] -> filling[i] = false; in_slot[i] = true }
#define reach_word(i) d_step { withdrawing[i] -> withdrawing[i] = false; word[i] = WITHDRAWN }

proctype memory_system()
{
end_memory:
    do
    :: reach_slot(0)
    :: reach_slot(1)
    :: reach_word(0)
    :: reach_word(1)
    od
}

/* At each wait. */
inline fill(i)
{
    if
    :: word[i] == REFUSED ->
           filling[i] = true;
#ifndef NO_FILL_RELEASE
           !filling[i];
#endif
           /* The receiver has refused the part, so it does not change the word. */
           word[i] = NONE
    :: else
    fi
}

inline withdraw(i)
{
    if
    :: word[i] == REFERENCED || word[i] == REFUSED ->
#ifndef NO_WITHDRAW
           withdrawing[i] = true;
#ifndef NO_WITHDRAW_FENCE
           !withdrawing[i];
#endif
#endif
           skip
    :: else
    fi
}

proctype sender()
{
    byte part = 0;
    do
    :: part < PARTS ->
           word[part] = REFERENCED;
           arrived[part] = true;
           /* Waits for something else that its receiver gives when it has the part, and meanwhile may fail or die. */
           do
           :: part + 1 == PARTS || other -> other = false; break
#ifndef FILL_LATE
           :: word[part] == REFUSED -> fill(part)
           :: failed = true; goto give_up
           :: dead = true; goto die
#endif
           od;
           part++
    :: else -> break
    od;
    /* The operation ends when all parts have been taken. */
    do
    :: head[0] && head[1] -> break
    :: word[0] == REFUSED -> fill(0)
    :: word[1] == REFUSED -> fill(1)
#ifndef FILL_LATE
    :: failed = true; goto give_up
#endif
    od;
    ended = true;
    right[0] = false;
    right[1] = false;
    goto done;
give_up:
    withdraw(0);
    withdraw(1);
    right[0] = false;
    right[1] = false;
    goto done;
die:
    reused = true;                       /* the memory that is read now is another process's */
done:
    skip
}

proctype receiver()
{
    byte part = 0;
    bool got, stands, looked;
    do
    :: part < PARTS ->
           if
           :: arrived[part] -> skip
           :: failed || dead -> break
           fi;
           if
           :: word[part] == REFERENCED ->
                  stands = false;
                  looked = false;
#ifdef NO_LOOK_FENCE
                  if                     /* the look may come first */
                  :: stands = (word[part] == REFERENCED); looked = true
                  :: skip
                  fi;
#endif
#ifdef HEAD_FIRST
                  head[part] = true;
#endif
                  if
                  :: /* The copy. The sender's application may write at any time. */
                         assert(!ended);
                         got = right[part] && !reused;
#ifdef NO_LOOK
                         stands = true;
#else
                         if
                         :: !looked -> stands = (word[part] == REFERENCED)
                         :: else
                         fi;
#endif
#ifndef NO_TOKEN
                         if
                         :: reused && !got -> stands = false /* the token is another process's */
                         :: else
                         fi;
#endif
                         if
                         :: stands ->
                                assert(got);
                                goto take
                         :: else
                         fi
                  :: skip                /* it cannot be read */
                  fi;
                  word[part] = REFUSED   /* even if it has been withdrawn meanwhile: both operations fail */
           :: word[part] != REFERENCED -> skip
           fi;
           if
           :: word[part] == NONE -> assert(in_slot[part])
           :: failed || dead -> break    /* this rank's operation fails, too */
           fi;
take:
           head[part] = true;
           other = part + 1 < PARTS;
           part++;
progress_taken:
           skip
    :: else -> break
    od
}

init
{
    atomic {
        run sender();
        run receiver();
        run memory_system()
    }
}
