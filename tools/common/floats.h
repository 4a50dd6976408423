/* Encoding of numbers in the small floating-point formats, written independently of the library, whose results it is to check.
 */
#ifndef RONDO_TOOLS_COMMON_FLOATS_H
#define RONDO_TOOLS_COMMON_FLOATS_H

#include "rondo.h"
#include <stdint.h>

/* The bits of the finite number x in a 16- or 8-bit float type, rounded to nearest, ties to even. Overflow gives infinity, or
 * NaN in float8e4m3, which has none. */
uint16_t floats_encode(rondo_datatype_t type, double x);

/* The number that such bits are. */
double floats_decode(rondo_datatype_t type, uint16_t bits);

/* Bits of precision, the implicit one included, of any float type: whole numbers up to 2^precision are exact. */
int floats_precision(rondo_datatype_t type);

#endif
