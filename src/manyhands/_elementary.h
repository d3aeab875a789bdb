/* exp, log, and log gamma with its derivatives, with the same bits on every machine: only additions, multiplications, divisions and integers, each rounded
 * as IEEE 754 says. The C library and NumPy have other functions for each instruction set, which differ in the last bit.
 *
 * exp and log are within 1 ulp of the true value. Free of branches and short chains of operations, so that loops over them vectorise.
 * elementary.py has the same steps in NumPy; a change here is a change there.
 */
#ifndef MANYHANDS_ELEMENTARY_H
#define MANYHANDS_ELEMENTARY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* GCC and Clang; for other compilers there is the plain path. */
#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(x) for -708 <= x <= 709: x = n log 2 + r, then 1 + r + r^2 q(r), and n put into the exponent. q interpolates at
   Chebyshev nodes of |r| <= log(2) / 2; what it leaves is below 2e-17. */
INLINE double exp_within(double x)
{
    const double to_integer = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    double shifted = x * 1.4426950408889634074 + to_integer;
    double n = shifted - to_integer;
    double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double r2 = r * r, r4 = r2 * r2;
    double a = (0.5000000000000001 + 0.16666666666666669 * r) + (0.04166666666662413 + 0.008333333333330062 * r) * r2;
    double b = (0.0013888888917213717 + 0.00019841269863053618 * r)
               + (2.4801521295954376e-05 + 2.7557268459997064e-06 * r) * r2;
    double c = 2.7620088445409746e-07 + 2.510038549551032e-08 * r;
    double p = 1.0 + (r + r2 * (a + r4 * (b + r4 * c)));
    return of_bits(bits_of(p) + (bits_of(shifted) << 52)); /* the low bits of `shifted` are n */
}

/* exp(x) for x <= 0; below -708 the result is 0. */
INLINE double exp_of_negative(double x)
{
    double result = exp_within(x > -708.0 ? x : -708.0);
    return x < -708.0 ? 0.0 : result;
}

/* exp(x); below -708 the result is 0, above 709 infinity. */
INLINE double exp_of(double x)
{
    double bounded = x > -708.0 ? x : -708.0;
    double result = exp_within(bounded < 709.0 ? bounded : 709.0);
    result = x < -708.0 ? 0.0 : result;
    result = x > 709.0 ? (double)INFINITY : result;
    return x == x ? result : x;
}

/* log(x): x = 2^n (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), s = f / (2 + f), and log(1 + f) = 2 atanh(s) by a series
   in s^2 whose coefficients interpolate at Chebyshev nodes; what they leave is below 1e-17. */
INLINE double log_of(double x)
{
    int is_small = x < 2.2250738585072014e-308; /* subnormal, zero or negative */
    uint64_t bits = bits_of(is_small ? x * 18014398509481984.0 : x); /* 2^54 */
    double n = of_bits((bits >> 52) | 0x4330000000000000) - 4503599627370496.0; /* 2^52 + the exponent, minus 2^52 */
    double m = of_bits((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
    int is_large = m > 1.4142135623730951;
    n += is_large ? -1022.0 : -1023.0;
    n += is_small ? -54.0 : 0.0;
    double f = (is_large ? 0.5 * m : m) - 1.0;
    double s = f / (2.0 + f), z = s * s, z2 = z * z, half = 0.5 * f * f;
    double a = (0.666666666666667 + 0.3999999999989945 * z) + (0.28571428626001427 + 0.22222211130560726 * z) * z2;
    double b = (0.18182889433757515 + 0.15331711346672997 * z) + 0.14616576421644387 * z2;
    double rest = z * (a + (z2 * z2) * b);
    double result = n * 6.93147180369123816490e-01
                    - ((half - (s * (half + rest) + n * 1.90821492927058770002e-10)) - f);
    result = x > 1.7976931348623157e308 ? x : result;
    result = x == 0.0 ? -(double)INFINITY : result;
    return x >= 0.0 ? result : (double)NAN;
}

/* log gamma and its first two derivatives for x > 0: Stirling's series in 1 / z, where z = x + 8 below 8. From there on
   what the series leave is below 1e-15 (trigamma: 1e-10). f(x) is f(x + 8) and what the factors of
   gamma(x + 8) = x (x + 1) ... (x + 7) gamma(x) add: from their product p and its derivatives q and r. */
INLINE double gammaln_of(double x)
{
    int is_small = x < 8.0;
    double b = is_small ? x : 1.0, z = is_small ? x + 8.0 : x, w = 1.0 / z, w2 = w * w;
    double p = ((b * (b + 1.0)) * ((b + 2.0) * (b + 3.0))) * (((b + 4.0) * (b + 5.0)) * ((b + 6.0) * (b + 7.0)));
    double tail = 0.0007936507936507937 + w2 * (-0.0005952380952380953 + w2 * (0.0008417508417508417
                  + w2 * (-0.0019175269175269176 + w2 * (0.00641025641025641 + w2 * -0.029550653594771242))));
    double series = w * (0.08333333333333333 + w2 * (-0.002777777777777778 + w2 * tail));
    double added = log_of(p);
    double result = (z - 0.5) * (log_of(z) - 1.0) + (0.41893853320467274 + series); /* log(2 pi) / 2 - 1 / 2 */
    result -= is_small ? added : 0.0;
    return x > 0.0 ? result : (double)NAN;
}

INLINE double digamma_of(double x)
{
    int is_small = x < 8.0;
    double b = is_small ? x : 1.0, z = is_small ? x + 8.0 : x, w = 1.0 / z, w2 = w * w;
    double p = b, q = 1.0;
    for (int i = 1; i < 8; i++) {
        double factor = b + i;
        q = q * factor + p;
        p = p * factor;
    }
    double tail = 0.004166666666666667 - w2 * (0.007575757575757576 - w2 * (0.021092796092796094
                  - w2 * (0.08333333333333333 - w2 * 0.4432598039215686)));
    double series = w2 * (0.08333333333333333 - w2 * (0.008333333333333333 - w2 * (0.003968253968253968 - w2 * tail)));
    double added = q / p;
    double result = log_of(z) - (0.5 * w + series);
    result -= is_small ? added : 0.0;
    return x > 0.0 ? result : (double)NAN;
}

INLINE double trigamma_of(double x)
{
    int is_small = x < 8.0;
    double b = is_small ? x : 1.0, z = is_small ? x + 8.0 : x, w = 1.0 / z, w2 = w * w;
    double p = b, q = 1.0, r = 0.0;
    for (int i = 1; i < 8; i++) {
        double factor = b + i;
        r = r * factor + 2.0 * q;
        q = q * factor + p;
        p = p * factor;
    }
    double tail = 0.023809523809523808 - w2 * (0.03333333333333333 - w2 * 0.07575757575757576);
    double series = w * w2 * (0.16666666666666666 - w2 * (0.03333333333333333 - w2 * tail));
    double added = (q / p) * (q / p) - r / p;
    double result = w + (0.5 * w2 + series);
    result += is_small ? added : 0.0;
    return x > 0.0 ? result : (double)NAN;
}

#endif
