/* Finding what MPI defines. Relies on the loader: what comes after the drop-in in the global scope, else the MPI libraries that
 * the process has loaded for some module alone, as Python does. */
#include "compat/mpi/next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct search {
    const char *name;
    void *address;
};

/* Whether a library's file name is that of an MPI: libmpi.so.40, libmpi_mpifh.so.40, libmpich.so.12, libmpifort.so.12. */
static int is_mpi(const char *path)
{
    const char *file = strrchr(path, '/');
    file = file != NULL ? file + 1 : path;
    return strncmp(file, "libmpi", strlen("libmpi")) == 0;
}

static int look(struct dl_phdr_info *object, size_t size, void *argument)
{
    struct search *search = argument;
    (void) size;
    if (object->dlpi_name == NULL || !is_mpi(object->dlpi_name))
        return 0;
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return 0;
    search->address = dlsym(library, search->name);
    dlclose(library);
    return search->address != NULL;
}

static void *find(void *scope, const char *name)
{
    struct search search = {.name = name, .address = dlsym(scope, name)};
    if (search.address == NULL)
        dl_iterate_phdr(look, &search);
    return search.address;
}

/* A program that is not position-independent has copies of the variables, which MPI itself then uses. */
void *rondo_mpi_variable(const char *name)
{
    return find(RTLD_DEFAULT, name);
}

void *rondo_mpi_fortran(const char *name)
{
    return find(RTLD_NEXT, name);
}

static int missing(void)
{
    return MPI_ERR_OTHER;
}

void *rondo_mpi_function(const char *name)
{
    static const char *const prefixes[] = {"PMPI_", "MPI_", "PMPIX_", "MPIX_"};
    char symbol[128];
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        snprintf(symbol, sizeof(symbol), "%s%s", prefixes[i], name);
        void *address = find(RTLD_NEXT, symbol);
        if (address != NULL)
            return address;
    }
    return (void *) missing;
}

int rondo_mpi_has(const char *name)
{
    return rondo_mpi_function(name) != (void *) missing;
}
