/* See lib/bootstrap/launcher_key.h. */
#include "lib/bootstrap/launcher_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two numbers of 64 bits in hexadecimal, with a dash between them. Any other text may be something that can be guessed. */
static int is_random_key(const char *text)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    return strspn(text, digits) == 16 && text[16] == '-' && strspn(text + 17, digits) == 16 && text[33] == '\0' &&
           strncmp(text, text + 17, 16) != 0;
}

const char *rondo_launcher_key(char key[RONDO_LAUNCHER_KEY])
{
    static const char name[] = "OMPI_MCA_orte_precondition_transports";
    const char *text = getenv("OMPI_COMM_WORLD_RANK") != NULL ? getenv(name) : NULL;
    if (text == NULL || !is_random_key(text))
        return NULL;
    snprintf(key, RONDO_LAUNCHER_KEY, "Open MPI %s", text);
    return name;
}
