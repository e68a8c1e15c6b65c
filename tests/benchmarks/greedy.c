/* Greedy one-piece Tetris with the eight BCTS features, written plainly over row masks: the C to be measured against.
   10x20, strict overflow. usage: greedy DECISIONS SEED -> prints decisions/s and lines/piece. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { COLS = 10, ROWS = 20, ALL = ROWS + 4, FULL = (1 << COLS) - 1 };
static const double W[8] = {-12.62900, 6.601974, -9.215815, -19.77356, -13.08335, -10.48747, -1.611863, -24.04087};
/* piece, rotation: height, width, then the rows from the bottom as masks */
static const int P[7][4][6] = {
    {{1, 4, 15}, {4, 1, 1, 1, 1, 1}}, {{2, 2, 3, 3}},
    {{2, 3, 7, 2}, {3, 2, 1, 3, 1}, {2, 3, 2, 7}, {3, 2, 2, 3, 2}},
    {{2, 3, 3, 6}, {3, 2, 2, 3, 1}}, {{2, 3, 6, 3}, {3, 2, 1, 3, 2}},
    {{2, 3, 7, 1}, {3, 2, 1, 1, 3}, {2, 3, 4, 7}, {3, 2, 3, 2, 2}},
    {{2, 3, 7, 4}, {3, 2, 3, 1, 1}, {2, 3, 1, 7}, {3, 2, 2, 2, 3}}};

static double value(const uint16_t *b, int top, double landing, int eroded) {
    int rowtr = 2 * (ROWS - top), coltr = 0, holes = 0, wells = 0, depth = 0, rows = 0;
    int run[COLS] = {0}; /* empty cells beneath, for the wells */
    for (int r = 0; r < top; r++) {
        int m = b[r] << 1 | 1 | 1 << (COLS + 1);
        rowtr += __builtin_popcount((m ^ m >> 1) & ((1 << (COLS + 1)) - 1));
        coltr += __builtin_popcount(b[r] ^ (r ? b[r - 1] : FULL));
        for (int c = 0; c < COLS; c++) {
            run[c] = b[r] >> c & 1 ? 0 : run[c] + 1;
            if (run[c] && m >> c & 1 && m >> (c + 2) & 1) wells += run[c];
        }
    }
    coltr += top ? __builtin_popcount(b[top - 1]) : COLS;
    int cover = 0, above[COLS] = {0}; /* full cells right above, for the depth of holes */
    for (int r = top - 1; r >= 0; r--) {
        int hole = cover & ~b[r];
        holes += __builtin_popcount(hole), rows += hole != 0, cover |= b[r];
        for (int c = 0; c < COLS; c++) {
            if (b[r] >> c & 1) above[c]++;
            else { if (hole >> c & 1) depth += above[c]; above[c] = 0; }
        }
    }
    return W[0] * landing + W[1] * eroded + W[2] * rowtr + W[3] * coltr + W[4] * holes + W[5] * wells + W[6] * depth + W[7] * rows;
}

static int drop(const uint16_t *b, uint16_t *to, int top, const int *p, int c, double *landing, int *eroded, int *over) {
    int y = top, lines = 0, own = 0, n = 0;
    for (; y > 0; y--)
        for (int i = 0; i < p[0]; i++)
            if (b[y - 1 + i] & p[2 + i] << c) goto rests;
rests:
    *landing = y + (p[0] - 1) / 2.0, *over = y + p[0] > ROWS;
    int high = y + p[0] > top ? y + p[0] : top;
    for (int r = 0; r < high; r++) {
        int mine = r >= y && r < y + p[0] ? p[2 + r - y] << c : 0, row = b[r] | mine;
        if (row == FULL) lines++, own += __builtin_popcount(mine);
        else to[n++] = row;
    }
    *eroded = lines * own;
    memset(to + n, 0, (ALL - n) * sizeof *to);
    return n;
}

int main(int argc, char **argv) {
    long decisions = argc > 1 ? atol(argv[1]) : 1000000, lines = 0;
    uint64_t x = argc > 2 ? strtoull(argv[2], 0, 10) * 2 + 1 : 1;
    uint16_t b[ALL] = {0}, to[ALL], best[ALL];
    int top = 0;
    clock_t start = clock();
    for (long k = 0; k < decisions; k++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        const int(*piece)[6] = P[(x >> 33) % 7];
        double most = -1e300;
        int best_top = -1;
        for (int r = 0; r < 4 && piece[r][0]; r++)
            for (int c = 0; c + piece[r][1] <= COLS; c++) {
                double landing, v;
                int eroded, over, n = drop(b, to, top, piece[r], c, &landing, &eroded, &over);
                if (!over && (v = value(to, n, landing, eroded)) > most) most = v, best_top = n, memcpy(best, to, sizeof best);
            }
        if (best_top < 0) memset(best, 0, sizeof best), best_top = 0; /* lost: a new game */
        int before = 4, after = 0;
        for (int r = 0; r < ALL; r++) before += __builtin_popcount(b[r]), after += __builtin_popcount(best[r]);
        lines += before > after ? (before - after) / COLS : 0;
        memcpy(b, best, sizeof b), top = best_top;
    }
    printf("%.0f %.5f\n", decisions / ((double)(clock() - start) / CLOCKS_PER_SEC), (double)lines / decisions);
}
