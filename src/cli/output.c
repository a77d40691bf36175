/* Messages, progress and small formats. */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int cli_fail(const ferry_error *error) {
    cli_progress_end();
    if (*error->where)
        fprintf(stderr, "ferry: %s: %s\n", error->where, error->message);
    else
        fprintf(stderr, "ferry: %s\n", error->message);
    return ferry_status_exit(error->status);
}

ferry_status cli_no_memory(ferry_error *error) {
    *error = (ferry_error){.status = FERRY_OUT_OF_MEMORY};
    snprintf(error->message, sizeof error->message, "out of memory");
    return error->status;
}

void cli_note(void *context, const char *text) {
    (void)context;
    cli_progress_end();
    fprintf(stderr, "note: %s\n", text);
}

void cli_write(void *context, const char *text, size_t length) {
    fwrite(text, 1, length, context ? context : stdout);
}

double cli_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

const char *cli_bytes(uint64_t bytes) {
    static char buffers[4][32];
    static unsigned turn;
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    char *buffer = buffers[turn++ % 4];
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer, sizeof buffers[0], unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return buffer;
}

void cli_sizes(size_t rank, const int64_t *shape) {
    putchar('[');
    for (size_t d = 0; d < rank; d++) printf("%s%lld", d ? ", " : "", (long long)shape[d]);
    putchar(']');
}

void cli_json_string(const char *text) {
    cli_json_string_to(stdout, text);
}

void cli_json_string_to(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

char *cli_read(const char *path, size_t *length) {
    size_t size = 0, capacity = 0;
    char *text = NULL;
    FILE *file = path ? fopen(path, "rb") : stdin;
    while (file && !feof(file) && !ferror(file)) {
        if (capacity - size < 2) {
            capacity = capacity ? capacity * 2 : 1 << 16;
            char *grown = realloc(text, capacity);
            if (!grown) break;
            text = grown;
        }
        size += fread(text + size, 1, capacity - size - 1, file);
    }
    bool complete = text && feof(file);
    if (file && path) fclose(file);
    if (!complete) {
        fprintf(stderr, "ferry: cannot read %s\n", path ? path : "standard input");
        free(text);
        return NULL;
    }
    text[size] = '\0';
    *length = size;
    return text;
}

int cli_finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fputs("ferry: cannot write to standard output\n", stderr);
    return status ? status : 4;
}

/* ---- progress ---- */

static volatile sig_atomic_t interrupted;
static double progress_start, progress_drawn;
static bool progress_wanted, progress_visible;

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_progress(void *context, uint64_t done, uint64_t total) {
    (void)context;
    double now = cli_seconds();
    if (progress_start == 0) {
        progress_start = now;
        progress_wanted = isatty(STDERR_FILENO);
    }
    /* Quick work needs no bar; a bar needs no more than ten pictures a second. */
    if (progress_wanted && now - progress_start > 0.5 && now - progress_drawn > 0.1) {
        progress_drawn = now;
        progress_visible = true;
        fprintf(stderr, "\r%3.0f%%  %s of %s, %s/s\033[K", 100.0 * (double)done / (double)total,
                cli_bytes(done), cli_bytes(total),
                cli_bytes((uint64_t)((double)done / (now - progress_start))));
    }
    return interrupted != 0;
}

void cli_progress_end(void) {
    if (progress_visible) fputs("\r\033[K", stderr);
    progress_visible = false;
}
