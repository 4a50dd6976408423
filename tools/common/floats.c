/* The small floating-point formats of tools/common/floats.h, by arithmetic on double: slow and plain, as a reference should be.
 */
#include "tools/common/floats.h"

#include <math.h>
#include <stdbool.h>

struct format {
    int exponent_bits, fraction_bits, bias;
    bool infinities;
};

static struct format format_of(rondo_datatype_t type)
{
    switch (type) {
    case RONDO_FLOAT16:
        return (struct format){5, 10, 15, true};
    case RONDO_BFLOAT16:
        return (struct format){8, 7, 127, true};
    case RONDO_FLOAT8E4M3:
        return (struct format){4, 3, 7, false};
    case RONDO_FLOAT8E5M2:
    default:
        return (struct format){5, 2, 15, true};
    }
}

int floats_precision(rondo_datatype_t type)
{
    if (type == RONDO_DOUBLE || type == RONDO_LONG_DOUBLE) /* values are computed as doubles */
        return 53;
    return type == RONDO_FLOAT ? 24 : format_of(type).fraction_bits + 1;
}

uint16_t floats_encode(rondo_datatype_t type, double x)
{
    struct format f = format_of(type);
    uint16_t sign = (uint16_t) ((signbit(x) ? 1u : 0u) << (f.exponent_bits + f.fraction_bits));
    x = fabs(x);
    if (x == 0.0)
        return sign;
    /* The unit of the last place: of x's own binade, but never below that of the subnormal numbers. */
    int exponent = ilogb(x);
    if (exponent < 1 - f.bias)
        exponent = 1 - f.bias;
    double places = nearbyint(ldexp(x, f.fraction_bits - exponent)); /* ties to even in the default rounding mode */
    /* An integer number of places, added to the biased exponent's field, carries into it just where the binade ends. */
    unsigned bits = (unsigned) (exponent + f.bias - 1) << f.fraction_bits;
    bits += (unsigned) places;
    unsigned top = ((1u << f.exponent_bits) - 1) << f.fraction_bits; /* infinity's place */
    if (f.infinities && bits > top)
        bits = top;
    if (!f.infinities && bits > (top | ((1u << f.fraction_bits) - 1)))
        bits = top | ((1u << f.fraction_bits) - 1);
    return (uint16_t) (sign | bits);
}

double floats_decode(rondo_datatype_t type, uint16_t bits)
{
    struct format f = format_of(type);
    unsigned fraction = bits & ((1u << f.fraction_bits) - 1), top = (1u << f.exponent_bits) - 1;
    unsigned exponent = (unsigned) bits >> f.fraction_bits & top;
    double x;
    if (exponent == top && (f.infinities || fraction == (1u << f.fraction_bits) - 1))
        x = f.infinities && fraction == 0 ? (double) INFINITY : (double) NAN;
    else if (exponent == 0)
        x = ldexp(fraction, 1 - f.bias - f.fraction_bits);
    else
        x = ldexp(fraction + (1u << f.fraction_bits), (int) exponent - f.bias - f.fraction_bits);
    return bits >> (f.exponent_bits + f.fraction_bits) & 1 ? -x : x;
}
