/* See lib/bootstrap/job.h. */
#include "lib/bootstrap/job.h"

#include "lib/base/cipher.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"

rondo_result_t rondo_job_encrypts(int *encrypts)
{
    int64_t wanted = 0;
    rondo_result_t result = rondo_environment_integer("RONDO_ENCRYPT", &wanted);
    if (result == RONDO_SUCCESS && wanted == 1 && rondo_cipher_unusable() != NULL)
        result = rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_ENCRYPT=1, but nothing can be encrypted: %s", rondo_cipher_unusable());
    *encrypts = wanted == 1;
    return result;
}
