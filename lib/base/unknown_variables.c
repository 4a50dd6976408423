/* Finds variables in the environment whose names begin as Rondo's do and which it does not have (lib/base/environment.h). */
#include "lib/base/environment.h"

#include "lib/base/error.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#define PREFIX   "RONDO_"
#define RESERVED "RONDO_X_" /* of builds and tests, which the library never reads */

enum { NAME_MOST = 64, SHOWN_MOST = 64 };

/* The number of characters to insert, remove, replace or swap with the next one, that make one name the other. Upper and lower
 * case are alike. Both are at most NAME_MOST long. */
static int distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int rows[3][NAME_MOST + 1], *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        last[j] = (int) j;
    for (size_t i = 1; i <= a_length; i++) {
        now[0] = (int) i;
        for (size_t j = 1; j <= b_length; j++) {
            int x = toupper((unsigned char) a[i - 1]), y = toupper((unsigned char) b[j - 1]);
            int least = last[j - 1] + (x != y);
            least = last[j] + 1 < least ? last[j] + 1 : least;
            least = now[j - 1] + 1 < least ? now[j - 1] + 1 : least;
            if (i > 1 && j > 1 && x == toupper((unsigned char) b[j - 2]) && toupper((unsigned char) a[i - 2]) == y)
                least = before[j - 2] + 1 < least ? before[j - 2] + 1 : least;
            now[j] = least;
        }
        int *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[b_length];
}

const char *rondo_environment_nearest(const char *name, size_t length)
{
    const rondo_variable_t *variable;
    const char *nearest = NULL;
    int least = 4;
    if (length > NAME_MOST)
        return NULL;
    for (int i = 0; (variable = rondo_environment_describe(i)) != NULL; i++) {
        size_t other = strlen(variable->name);
        int steps = distance(name, length, variable->name, other);
        /* A name of which half would have to change means something else. */
        if (steps < least && 2 * (size_t) steps < other - strlen(PREFIX)) {
            least = steps;
            nearest = variable->name;
        }
    }
    return nearest;
}

int rondo_environment_warn_of_unknown(int rank)
{
    static int warned; /* atomic */
    int unknown = 0;
    if (__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
        return 0;
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        char name[SHOWN_MOST + 1];
        size_t length = strcspn(*entry, "=");
        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0 || strncmp(*entry, RESERVED, strlen(RESERVED)) == 0)
            continue;
        size_t shown = length < SHOWN_MOST ? length : SHOWN_MOST;
        for (size_t i = 0; i < shown; i++)
            name[i] = (unsigned char) (*entry)[i] < ' ' || (*entry)[i] == 0x7f ? '?' : (*entry)[i];
        name[shown] = '\0';
        if (length <= SHOWN_MOST && rondo_environment_find(name) != NULL)
            continue;
        const char *nearest = rondo_environment_nearest(*entry, length);
        unknown++;
        if (nearest != NULL)
            rondo_log(RONDO_LOG_WARN, rank, "%s is not a variable of Rondo; did you mean %s?", name, nearest);
        else
            rondo_log(RONDO_LOG_WARN, rank, "%s is not a variable of Rondo; rondo info lists them", name);
    }
    return unknown;
}
