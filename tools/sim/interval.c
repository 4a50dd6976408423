/* The exact 95% confidence interval of a ratio (Clopper and Pearson), by bisection on the binomial tail. See tools/sim/sim.h.
 */
#include "tools/sim/sim.h"

#include <math.h>

/* Continued fraction of the incomplete beta function (modified Lentz), for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), value;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    value = d;
    for (int m = 1; m < 10000; m++) {
        double step = 1;
        for (int odd = 0; odd < 2; odd++) {
            double k = m, term = odd == 0 ? k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
                                          : -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            step = d * c;
            value *= step;
        }
        if (fabs(step - 1) < 1e-14)
            break;
    }
    return value;
}

/* Regularized incomplete beta function. */
static double beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

static double quantile(double a, double b, double p)
{
    double low = 0, high = 1;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        *(beta(a, b, middle) < p ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

void sim_interval(uint64_t count, uint64_t total, double *low, double *high)
{
    double k = (double) count, n = (double) total;
    *low = count == 0 ? 0 : quantile(k, n - k + 1, 0.025);
    *high = count >= total ? 1 : quantile(k + 1, n - k, 0.975);
}
